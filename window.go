package inbox

import "time"

// DefaultWindow is for how long a store remembers a key, unless it is told
// otherwise: longer than a weekend's outage and what is sent again by hand after it.
const DefaultWindow = 7 * 24 * time.Hour

// ClockSkew is by how much the clocks of producers, consumers and the database may
// differ. A store keeps each key for that much longer than its window, so that a
// message which is young enough by one clock is not forgotten by another.
const ClockSkew = time.Minute

// Windowed is the optional ability of a store to say for how long it remembers a
// key. That is the guarantee: a message that is delivered again after its window
// is processed again.
type Windowed interface {
	// Window returns for how long the keys of a consumer are kept after their
	// message was received first, by the database's clock. Zero: for ever. Safe for
	// concurrent use.
	Window(consumer string) time.Duration
}
