package nestedcontrolplane

import (
	"errors"
	"fmt"
)

// blockedError is why a reconcile goes no further until an object changes.
// Other errors are retried.
type blockedError struct{ reason, message string }

// Error returns the message.
func (e *blockedError) Error() string { return e.message }

// blocked returns a blockedError.
func blocked(reason, format string, args ...any) error {
	return &blockedError{reason: reason, message: fmt.Sprintf(format, args...)}
}

// retriable returns an error unless it is a blockedError.
func retriable(err error) error {
	if b := (*blockedError)(nil); errors.As(err, &b) {
		return nil
	}
	return err
}
