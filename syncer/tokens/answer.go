package tokens

import (
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

// serviceAccounts is the resource of service accounts.
const serviceAccounts = "serviceaccounts"

// classify returns what an error of a request for a token means for the object
// that needs it. The tenant gets an event about it, since errors of
// kubelets about tokens are not synced up.
func classify(err error, account string) error {
	wrapped := fmt.Errorf("issue a token of service account %s: %w", account, err)
	switch {
	case isMissing(err, serviceAccounts):
		return &pending.BlockedError{On: "ServiceAccount " + account}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return pending.Reject(wrapped)
	}
	return wrapped
}

// isMissing reports whether an object of this resource was not found, and not
// another one that the request names.
func isMissing(err error, resource string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(status) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == resource
}

// Bounds of what a tenant's apiserver may issue.
const (
	maxToken = 64 << 10
	// A token of a shorter life would be requested again and again. One of a
	// longer life is renewed daily, as kubelets do.
	minTokenLife, maxTokenLife = time.Minute, 24 * time.Hour
)

// lifeOf returns how long an issued token is used.
func lifeOf(issued authenticationv1.TokenRequestStatus, now time.Time) (time.Duration, error) {
	if issued.Token == "" || len(issued.Token) > maxToken {
		return 0, pending.Reject(fmt.Errorf("the token that the apiserver issues has %d bytes, which is not between 1 and %d",
			len(issued.Token), maxToken))
	}
	life := issued.ExpirationTimestamp.Sub(now)
	if life < minTokenLife {
		return 0, pending.Reject(errors.New("the token that the apiserver issues has expired or is about to"))
	}
	return min(life, maxTokenLife), nil
}

// A token is renewed when this part of its life is over: early enough for an
// outage of the syncer, and with a random part, so that tokens that were issued
// together are not renewed together.
const renewalFrom, renewalSpread = 0.7, 0.14

// renewAfter returns the time until the renewal of a token of this life.
func renewAfter(life time.Duration) time.Duration {
	return wait.Jitter(time.Duration(renewalFrom*float64(life)), renewalSpread)
}

// isPast reports whether a time is past. One that cannot be read is.
func isPast(text string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err != nil || now.After(at)
}
