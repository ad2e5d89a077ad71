package main

import (
	"embed"
	"io/fs"
	"math/rand/v2"
	"path"
)

// inbound has a folder for each partner, with what came from it.
//
//go:embed testdata/midwest testdata/nordhandel
var inbound embed.FS

// document is a file that a partner sends.
type document struct {
	partner string
	file    string
	content []byte
}

func documents() ([]document, error) {
	names, err := fs.Glob(inbound, "testdata/*/*")
	if err != nil {
		return nil, err
	}
	all := make([]document, len(names))
	for i, name := range names {
		content, err := inbound.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all[i] = document{partner: path.Base(path.Dir(name)), file: path.Base(name), content: content}
	}
	return all, nil
}

// twice is each document two times, in an order that seed gives.
func twice(documents []document, seed uint64) []document {
	arrivals := append(documents[:len(documents):len(documents)], documents...)
	order := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a shuffle that can be repeated, not a secret
	order.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
	return arrivals
}
