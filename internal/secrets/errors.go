package secrets

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// WithoutData keeps of an error only its reason where the rest may quote an
// object: it ends in logs and in a status.
func WithoutData(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fmt.Errorf("the super cluster refuses it: %s", apierrors.ReasonForError(err))
	}
	return err
}
