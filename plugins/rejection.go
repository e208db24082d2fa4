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
