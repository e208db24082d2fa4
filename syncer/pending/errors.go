package pending

import (
	"errors"
	"time"
)

// BlockedError means that an object cannot be synced until another one exists.
// The event of the other one leads to the object again, so nothing is retried.
// Its text becomes an event on the tenant's object.
type BlockedError struct {
	// On is the kind and the name of the missing object, as the tenant names it.
	On string
}

// Error returns what is missing.
func (e *BlockedError) Error() string {
	return "blocked on " + e.On + ", which does not exist or is not synced yet"
}

// WaitingError means that an object continues when something that is under way
// has completed, whose event leads to the object again. Its text becomes an
// event on the tenant's object.
type WaitingError struct {
	// On is what has to complete.
	On string
	// Until is when that is expected; zero if unknown.
	Until time.Time
}

// Error returns what the object waits for.
func (e *WaitingError) Error() string { return "waiting for " + e.On }

// ErrInDoubt means that a copy is kept although the tenant's object is missing.
// The object is reconciled again soon.
var ErrInDoubt = errors.New("an object is missing that was not observed to be deleted, so its copy is kept for now")

// IsUnready reports whether an error is a [BlockedError] or a [WaitingError], or
// wraps one: the object is as it should be, and not there yet.
func IsUnready(err error) bool {
	return errors.As(err, new(*BlockedError)) || errors.As(err, new(*WaitingError))
}
