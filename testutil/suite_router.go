package testutil
func routerCases() []testCase { return nil }
func messageCases() []testCase { return nil }
func producedCases() []testCase { return nil }
