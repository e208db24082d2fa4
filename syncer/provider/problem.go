package provider

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
)

// problem is the reason why a tenant is not engaged: the reason and the message
// of its condition, which are the same for each attempt, and the cause, which
// is logged.
type problem struct {
	reason, message string
	cause           error
}

// Error returns the message and the cause.
func (p problem) Error() string { return fmt.Sprintf("%s: %v", p.message, p.cause) }

// Unwrap returns the cause.
func (p problem) Unwrap() error { return p.cause }

// asProblem returns the problem for an error of the connection to a tenant.
func asProblem(err error, server string) error {
	if errors.As(err, &problem{}) {
		return err
	}
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return problem{
			tenancyv1alpha1.ReasonUnauthorized,
			fmt.Sprintf("The tenant's apiserver at %s rejects the admin kubeconfig; its user needs all permissions", server),
			err,
		}
	}
	if why := tenanthttp.Refusal(err); why != nil {
		return problem{
			tenancyv1alpha1.ReasonAnswerRefused,
			fmt.Sprintf("The tenant's apiserver at %s sent an answer that the syncer rejects: %v", server, why),
			err,
		}
	}
	return unreachable(server, err)
}

// unreachable returns the problem of a tenant whose apiserver does not answer.
func unreachable(server string, cause error) problem {
	return problem{
		tenancyv1alpha1.ReasonUnreachable,
		fmt.Sprintf("The tenant's apiserver at %s does not answer; retrying", server),
		cause,
	}
}
