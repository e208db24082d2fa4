package plugins

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ReasonQuotaExceeded is the default reason of a [RejectionError].
const ReasonQuotaExceeded = "QuotaExceeded"

// RejectionError is returned by a validator that rejects an object. The tenant
// reads it, so it must not name anything of the super cluster or of other
// tenants.
type RejectionError struct {
	// Reason is a word in CamelCase for programs; empty means
	// [ReasonQuotaExceeded].
	Reason string
	// Message states what exceeds the limit, and the limit.
	Message string
}

// Reject returns a [RejectionError] with the reason [ReasonQuotaExceeded].
func Reject(format string, args ...any) *RejectionError {
	return &RejectionError{Reason: ReasonQuotaExceeded, Message: fmt.Sprintf(format, args...)}
}

// ErrAwaited is the result of a write that the super cluster executes itself
// after the validators' answer, and may yet reject: that of an object of a
// converted tenant. [Undecided] is true for it. An accountant that has to be
// exact counts such an object until it is in its cache, or there in a later
// version than [Request.Was], or until no such write can be under way.
var ErrAwaited = errors.New("the super cluster executes the write later")

// AsRejection returns the rejection in an error; nil if it has none.
func AsRejection(err error) *RejectionError {
	rejection, _ := errors.AsType[*RejectionError](err)
	return rejection
}

// Error returns the message.
func (r *RejectionError) Error() string { return r.Message }

// Undecided reports whether a write that failed with err may have succeeded
// nevertheless: there was no answer, or a server error.
func Undecided(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code < http.StatusBadRequest || code >= http.StatusInternalServerError
}
