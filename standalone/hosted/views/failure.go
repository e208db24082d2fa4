package views

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// DecodeError means that a stored object cannot be decoded. It does not contain
// the reason, which could quote the object.
type DecodeError struct {
	Kind string
	// Resource is the prefix of the record, as in keyspace.RecordPrefix.
	Resource string
	// Name is the object's name, with its namespace before it if it has one.
	Name string
	// UnknownVersion reports whether the object is of a kind or version that
	// this process does not know.
	UnknownVersion bool
}

// Error implements error.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s %s: %v", e.Kind, e.Name, e.Unwrap())
}

var (
	errUnknownVersion = errors.New("the stored object is of an unknown version")
	errDamaged        = errors.New("the stored object is damaged")
)

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error {
	if e.UnknownVersion {
		return errUnknownVersion
	}
	return errDamaged
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
