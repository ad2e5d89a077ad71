//go:build !race

package brokers_test

const raceDetector = false
