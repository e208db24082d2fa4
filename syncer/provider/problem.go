package provider

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
)

// problem is why a tenant is not engaged: the reason and the message of its condition, which stay the same from one attempt
// to the next, and the cause, which goes to the log.
type problem struct {
	reason, message string
	cause           error
}

// Error is the message and the cause.
func (p problem) Error() string { return fmt.Sprintf("%s: %v", p.message, p.cause) }

// Unwrap is the cause.
func (p problem) Unwrap() error { return p.cause }

// asProblem says what an error of the connection to a tenant means.
func asProblem(err error, server string) error {
	if errors.As(err, &problem{}) {
		return err
	}
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return problem{
			tenancyv1alpha1.ReasonUnauthorized,
			fmt.Sprintf("The tenant's apiserver at %s refuses the admin kubeconfig; the user in it needs all rights", server),
			err,
		}
	}
	if why := tenanthttp.Refusal(err); why != nil {
		return problem{
			tenancyv1alpha1.ReasonAnswerRefused,
			fmt.Sprintf("The tenant's apiserver at %s answers with what the syncer does not read: %v", server, why),
			err,
		}
	}
	return unreachable(server, err)
}

// unreachable is the problem of a tenant whose apiserver does not answer.
func unreachable(server string, cause error) problem {
	return problem{
		tenancyv1alpha1.ReasonUnreachable,
		fmt.Sprintf("The tenant's apiserver at %s does not answer; it is tried again", server),
		cause,
	}
}
