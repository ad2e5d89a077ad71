package testutil

import "testing"

// testCase is a rule that a store can break.
type testCase struct {
	name  string // the rule's number and its sentence
	needs []Ability
	run   func(t *testing.T, h Harness)
}

// RunStoreTests runs the suite: the contract of [inbox.Store], then the
// middleware on that store. The list of cases is the same for every store; one
// that Harness.Lacks rules out is shown as skipped, with the reason.
//
// It takes some seconds, most of them in waits that have to end in time. The
// cases run in parallel with each other, and RunStoreTests returns when all are
// done.
func RunStoreTests(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("testutil: Harness.Open is nil")
	}
	if len(h.Handles) == 0 {
		t.Fatal("testutil: Harness.Handles is empty: say which types of transaction the store offers")
	}
	groups := []struct {
		name  string
		cases [][]testCase
	}{
		{"contract", [][]testCase{
			keyCases(), claimCases(), duplicateCases(), inFlightCases(), raceCases(),
			handlerCases(), contextCases(), discardCases(), commitCases(), recordCases(), sweepCases(),
		}},
		{"middleware", [][]testCase{
			routerCases(), messageCases(), producedCases(),
		}},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, cases := range g.cases {
				for _, c := range cases {
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						for _, a := range c.needs {
							if why, lacks := h.Lacks[a]; lacks {
								t.Skipf("not a store that %s: %s", a, why)
							}
						}
						c.run(t, h)
					})
				}
			}
		})
	}
}

// open opens an instance whose connections are all given back when the case ends.
func (h Harness) open(t *testing.T, o Options) *Instance {
	t.Helper()
	in := h.Open(t, o)
	if in.InUse != nil {
		t.Cleanup(func() {
			if n := in.InUse(); n != 0 {
				t.Errorf("%d connections are still in use after the last delivery", n)
			}
		})
	}
	return in
}
