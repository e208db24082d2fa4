package kinds

// EvictionError is an error of Desired that also deletes the existing copy.
type EvictionError struct{ Err error }

// Error says why the copy is deleted.
func (e EvictionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e EvictionError) Unwrap() error { return e.Err }
