package soak_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// chance decides what goes wrong, from a seed, and counts it.
type chance struct {
	mu    sync.Mutex
	rng   *rand.Rand
	calm  bool // nothing goes wrong any more
	count map[string]int
}

func newChance(seed uint64) *chance {
	return &chance{rng: rand.New(rand.NewPCG(seed, 0)), count: map[string]int{}} //nolint:gosec // reproducible on purpose
}

// in reports whether this goes wrong now, which it does once in so many times.
func (c *chance) in(times int, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm || c.rng.IntN(times) != 0 {
		return false
	}
	c.count[what]++
	return true
}

// saw counts what went wrong without being planned.
func (c *chance) saw(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[what]++
}

// below returns a number below n.
func (c *chance) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// end lets nothing go wrong from now on.
func (c *chance) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
}

// seen returns how often something went wrong.
func (c *chance) seen(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[what]
}

func (c *chance) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]string, 0, len(c.count))
	for _, what := range slices.Sorted(maps.Keys(c.count)) {
		all = append(all, fmt.Sprintf("%s %d", what, c.count[what]))
	}
	return strings.Join(all, ", ")
}
