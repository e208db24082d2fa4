// Package exit has the exit codes of kubectl vc, and errors that have one
// together with the next step for the user.
package exit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The exit codes. Scripts rely on them: a code never changes its meaning.
const (
	// Done: what was requested is done.
	Done = 0
	// Failed: any error without a code of its own.
	Failed = 1
	// Usage: the command line is not valid; nothing was done.
	Usage = 2
	// NotFound: an object that the command line names does not exist.
	NotFound = 3
	// Denied: the super cluster, or the tenant, does not permit it.
	Denied = 4
	// TimedOut: the tenant did not reach the requested state in time.
	TimedOut = 5
	// Unreachable: the control plane of the tenant cannot be reached.
	Unreachable = 6
	// NotSynced: the object, or any of the tenant, is not synced.
	NotSynced = 7
	// Unhealthy: a check of doctor failed.
	Unhealthy = 8
)

// Meaning is an exit code with its description.
type Meaning struct {
	Code    int
	Meaning string
}

// Meanings lists all exit codes.
func Meanings() []Meaning {
	return []Meaning{
		{Done, "what was requested is done"},
		{Failed, "any other error"},
		{Usage, "the command line is not valid; nothing was done"},
		{NotFound, "an object that the command line names does not exist"},
		{Denied, "the permissions of the user do not suffice"},
		{TimedOut, "the tenant did not reach the requested state in time; what was requested continues"},
		{Unreachable, "the control plane of the tenant cannot be reached"},
		{NotSynced, "`sync`: an object is not synced"},
		{Unhealthy, "`doctor`: a check failed"},
	}
}

// Error is an error with an exit code and the next step.
type Error struct {
	// Code is the exit code.
	Code int
	// Err is what failed. Without it, nothing is printed.
	Err error
	// Next tells the user what to do, in the imperative.
	Next string
}

// Error returns what failed.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// With adds the next step, and the exit code of its cause, to an error.
func With(err error, next string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Code: Of(err), Err: err, Next: fmt.Sprintf(next, args...)}
}

// Usagef returns an error of the command line.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// Of returns the exit code for an error.
func Of(err error) int {
	if err == nil {
		return Done
	}
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	switch {
	case apierrors.IsNotFound(err):
		return NotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Denied
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	}
	return Failed
}

// Next returns the next step of an error; empty if it has none.
func Next(err error) string {
	if coded, ok := errors.AsType[*Error](err); ok && coded.Next != "" {
		return coded.Next
	}
	switch Of(err) {
	case Denied:
		return "Check your permissions: kubectl auth can-i --list"
	case Usage:
		return "Read the help: kubectl vc --help"
	}
	return ""
}
