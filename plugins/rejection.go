package plugins

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ReasonQuotaExceeded is the reason of a [RejectionError] that names none.
const ReasonQuotaExceeded = "QuotaExceeded"

// RejectionError is the error by which a validator says that an object may not be written for now, and why. The tenant reads it, so
// it names nothing of the super cluster and of other tenants.
type RejectionError struct {
	// Reason is one word in camel case, for programs; empty is [ReasonQuotaExceeded].
	Reason string
	// Message says what would be too much and how much is allowed.
	Message string
}

// Reject makes a [RejectionError] with the reason [ReasonQuotaExceeded].
func Reject(format string, args ...any) *RejectionError {
	return &RejectionError{Reason: ReasonQuotaExceeded, Message: fmt.Sprintf(format, args...)}
}

// Error is the message.
func (r *RejectionError) Error() string { return r.Message }

// Undecided says whether a write that failed with this error may have been done all the same: nobody answered, or not what became
// of it.
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
