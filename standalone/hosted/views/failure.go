package views

import (
	"fmt"
	"runtime/debug"
)

// DecodeError means that a stored object cannot be decoded. It does not contain
// the reason, which could quote the object.
type DecodeError struct {
	Kind string
	// Name is the object's name, with its namespace before it if it has one.
	Name string
	// UnknownVersion reports whether the object is of a kind or version that
	// this process does not know.
	UnknownVersion bool
}

// Error implements error.
func (e *DecodeError) Error() string {
	if e.UnknownVersion {
		return fmt.Sprintf("decode %s %s: the stored object is of an unknown version", e.Kind, e.Name)
	}
	return fmt.Sprintf("decode %s %s: the stored object is damaged", e.Kind, e.Name)
}

// PanicError is a recovered panic.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recovered calls a function with the panic in progress, if there is one. It
// must be deferred itself.
func Recovered(fail func(err error)) {
	if value := recover(); value != nil {
		fail(&PanicError{Value: value, Stack: debug.Stack()})
	}
}
