// Package panics contains panics of code that is not the project's own, such as
// plugins.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is in the error of a call that panicked.
var ErrPanic = errors.New("it panicked")

// Recover sets err to an error with the stack if the function panics that defers
// it.
func Recover(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
	}
}
