package kit

import "sync"

// AtOnce calls f with each number below n at the same time, and returns the
// errors in the order of the numbers. Matchers have a state, so that goroutines
// cannot share one: what they return is asserted afterwards.
func AtOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}
