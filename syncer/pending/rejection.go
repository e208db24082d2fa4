// Package pending describes how reconciles end, and keeps the objects that are
// not synced yet with the reason of each.
package pending

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// RejectionError is an error that the tenant or an admin of the super cluster
// has to correct. Its text becomes an event on the tenant's object.
type RejectionError struct{ error }

// Unwrap returns the cause.
func (r RejectionError) Unwrap() error { return r.error }

// Reject returns a rejection with this cause.
func Reject(cause error) error { return RejectionError{cause} }

// IsRejection reports whether an error is a rejection, or wraps one.
func IsRejection(err error) bool { return errors.As(err, &RejectionError{}) }

// Classify returns a rejection for an error by which the super cluster or a
// validator rejects an object. It returns other errors, which may pass by
// themselves, as they are.
func Classify(err error) error {
	switch {
	case LacksRights(err):
		return fmt.Errorf("the syncer lacks a right in the super cluster (see docs/admins/custom-resources.md): %w", err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case errors.Is(err, guard.ErrForeign), apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return RejectionError{err}
	case errors.As(err, new(*plugins.RejectionError)), errors.As(err, new(*validation.FailureError)):
		return RejectionError{err}
	}
	return err
}

// LacksRights reports whether the authorizer of the super cluster rejected the
// syncer, and not the object. Only an admin can correct that, and the tenant
// does not read the cause.
func LacksRights(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), ` is forbidden: User "`)
}
