package retention

import "time"

// pace finds how many keys a batch may have: as many as go fast, as a sweep that
// has much to do should end, and few where they go slowly, as others wait for the
// same disk and locks.
type pace struct {
	size     int
	usual    int
	fast     int // batches in a row that were
	failures int // batches in a row
}

const (
	fast, slow   = 25 * time.Millisecond, 100 * time.Millisecond
	manyFast     = 10
	mostTimes    = 5 // the usual size
	fewest       = 10
	mostFailures = 5
)

func newPace(usual int) *pace { return &pace{size: usual, usual: usual} }

// removed takes note of a batch that was full.
func (p *pace) removed(took time.Duration) {
	p.failures = 0
	switch {
	case took > slow:
		p.shrink()
	case took > fast:
		p.fast = 0
	default:
		if p.fast++; p.fast >= manyFast {
			p.fast = 0
			p.size = min(p.size*2, p.usual*mostTimes)
		}
	}
}

// failed takes note of a batch that met others, and reports whether to try again.
func (p *pace) failed() bool {
	p.failures++
	p.shrink()
	return p.failures <= mostFailures
}

func (p *pace) shrink() {
	p.fast = 0
	p.size = max(p.size/2, min(p.usual, fewest))
}
