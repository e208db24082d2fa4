package servicecidr

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// IsRejection reports whether the super cluster chose an address for a Service
// that its policy reserves for others: the next choice can be another. A Service
// with an address of the tenant's range only gets this error right after its
// namespace was annotated with the range. A policy that failed, instead of
// deciding, returns another reason than Forbidden.
func IsRejection(err error) bool {
	const denied = "ValidatingAdmissionPolicy '" + names.ServiceAddressPolicy + "'"
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), denied)
}
