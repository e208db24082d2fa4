package kinds

// EvictionError is an error of Desired that makes the syncer delete the
// existing copy.
type EvictionError struct{ Err error }

// Error returns the reason of the deletion.
func (e EvictionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e EvictionError) Unwrap() error { return e.Err }
