package provisioner

import (
	"errors"
	"fmt"
)

// Failure is an error that an admin has to correct: its reason and message go
// into the VirtualCluster's conditions as they are. Both stay the same as long
// as the cause does.
//
//nolint:errname // provisioner.Failure says what it is; it is no error of the program
type Failure struct {
	// Reason is one word in camel case: one of the reasons in the tenancy API,
	// or one of the provisioner's own.
	Reason string
	// Message says what is wrong and what to change, in one line. It has no
	// secrets.
	Message string
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Failf makes a Failure.
func Failf(reason, format string, args ...any) error {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// AsFailure returns the Failure in an error's chain, or nil.
func AsFailure(err error) *Failure {
	f, _ := errors.AsType[*Failure](err)
	return f
}
