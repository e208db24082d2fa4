// Package tokens keeps the service account tokens of a tenant's objects beside their copies.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Issuer keeps the tokens of one tenant's objects beside their copies.
type Issuer struct{ *session.Session }

// NewIssuer makes the issuer of a tenant's tokens.
func NewIssuer(s *session.Session) *Issuer { return &Issuer{s} }

// SecretType returns what an apiserver knows Secrets as.
func SecretType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"}
}

// serviceAccounts is the resource of service accounts.
const serviceAccounts = "serviceaccounts"

const (
	// renewalFrom and renewalSpread say which part of a token's life is over when it is renewed: not the same of all that were issued at
	// the same time, and early enough for the syncer to be away for a while.
	renewalFrom, renewalSpread = 0.7, 0.14
)

// Ensure makes sure that the tokens of a tenant's object are beside its copy, and live long enough.
func (s *Issuer) Ensure(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	due, err := s.tokensDue(ctx, k, o)
	if err != nil || !due {
		return err
	}
	wanted := k.Down.Tokens(o.Tenant)
	issued, renewal := map[string][]byte{}, time.Time{}
	for _, key := range slices.Sorted(maps.Keys(wanted.Wanted)) {
		token, at, err := s.issue(ctx, k, o, wanted.ServiceAccount, wanted.Wanted[key])
		if err != nil {
			return err
		}
		issued[key] = []byte(token)
		if renewal.IsZero() || at.Before(renewal) {
			renewal = at
		}
	}
	return s.keepTokens(ctx, o, issued, renewal)
}

// tokensDue says whether tokens have to be issued for a tenant's object, because it has none or because their time has come.
func (s *Issuer) tokensDue(ctx context.Context, k *kinds.Kind, o session.Objects) (bool, error) {
	kept, wanting, err := s.Compare(ctx, k, o)
	return wanting || kept != nil && isPast(kept.GetAnnotations()[names.TokensRenewal]), err
}

// Compare is the Secret with the tokens of a tenant's object, and says whether the object is wanting them. What has ended, or is
// about to, has no need of any.
func (s *Issuer) Compare(ctx context.Context, k *kinds.Kind, o session.Objects) (kept client.Object, wanting bool, err error) {
	if k.Down.Tokens == nil || o.Super != nil && (session.Stand(o.Super) != session.Present || k.Down.Mirror.Ended(o.Super)) {
		return nil, false, nil
	}
	kept, err = s.keptTokens(ctx, o)
	if err != nil || kept != nil && session.IsCopyOf(translate.OriginOf(kept), o.Tenant) {
		return kept, false, err
	}
	return nil, len(k.Down.Tokens(o.Tenant).Wanted) > 0, nil
}

// keptTokens is what is known of the Secret with an object's tokens; nil if there is none.
func (s *Issuer) keptTokens(ctx context.Context, o session.Objects) (client.Object, error) {
	key := client.ObjectKey{Namespace: o.SuperKey.Namespace, Name: names.TokenSecret(o.SuperKey.Name)}
	return s.SuperObject(ctx, s.TokenKinds.Secrets, key)
}

// EnqueueRenewals enqueues the objects whose tokens are to be renewed. It is called now and then.
func (s *Issuer) EnqueueRenewals(ctx context.Context) {
	if s.TokenKinds.Of == nil || s.Kind(s.TokenKinds.Of.Name) == nil || !s.Begun.Load() {
		return
	}
	err := s.EachKeptTokens(ctx, func(kept client.Object) {
		if isPast(kept.GetAnnotations()[names.TokensRenewal]) {
			s.Enqueue(s.Request(s.TokenKinds.Of, session.TokensKey(kept)), queue.PriorityLow)
		}
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot look for tokens to renew", "tenant", s.Lane())
	}
}

// issue has the tenant's apiserver issue a token, and says when it is to be renewed.
func (s *Issuer) issue(
	ctx context.Context, k *kinds.Kind, o session.Objects, account string, want kinds.Token,
) (token string, renewal time.Time, err error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Name: o.Key.Name, UID: o.Tenant.GetUID(),
		},
	}}
	if want.ExpirationSeconds != nil {
		request.Spec.ExpirationSeconds = new(*want.ExpirationSeconds) // the answer is written into the request
	}
	if want.Audience != "" {
		request.Spec.Audiences = []string{want.Audience}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.Key.Namespace, Name: account}}
	now := time.Now()
	if err := s.Client.SubResource("token").Create(ctx, of, request); err != nil {
		return "", now, classify(err, account)
	}
	life, err := lifeOf(request.Status, now)
	if err != nil {
		return "", now, fmt.Errorf("issue a token of service account %s: %w", account, err)
	}
	return request.Status.Token, now.Add(wait.Jitter(time.Duration(renewalFrom*float64(life)), renewalSpread)), nil
}

// classify returns what an error of the tenant's apiserver means for the
// object that needs a token of this service account. The tenant has to be told
// here: errors of kubelets about tokens are not synced up.
func classify(err error, account string) error {
	wrapped := fmt.Errorf("issue a token of service account %s: %w", account, err)
	status, _ := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsNotFound(err) && status != nil && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == serviceAccounts:
		return &pending.BlockedError{On: "ServiceAccount " + account}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return pending.Reject(wrapped)
	}
	return wrapped
}

// keepTokens writes tokens into the Secret beside the copy, whether there is one or not.
func (s *Issuer) keepTokens(ctx context.Context, o session.Objects, issued map[string][]byte, renewal time.Time) error {
	t := s.Identity()
	annotations := t.Stamp(o.Tenant)
	annotations[names.TokensOf] = o.Key.Name
	annotations[names.TokensRenewal] = renewal.Format(time.RFC3339)
	secret := corev1ac.Secret(names.TokenSecret(o.Key.Name), o.SuperKey.Namespace).
		WithLabels(map[string]string{names.VCName: t.Name, names.VCNamespace: t.Namespace, names.Tokens: session.True}).
		WithAnnotations(annotations).WithType(corev1.SecretTypeOpaque).WithData(issued)
	if err := s.Guard.Apply(ctx, o.SuperKey.Namespace, secret); err != nil {
		return pending.Classify(err)
	}
	s.SuperRecent.Put(s.TokenKinds.Secrets.Name, &metav1.PartialObjectMetadata{TypeMeta: SecretType(), ObjectMeta: metav1.ObjectMeta{
		Namespace: *secret.Namespace, Name: *secret.Name, UID: *secret.UID, ResourceVersion: *secret.ResourceVersion, Annotations: annotations,
	}})
	return nil
}

// Drop removes the tokens of a tenant's object that is gone, as is its copy.
func (s *Issuer) Drop(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	kept, err := s.Left(ctx, k, o)
	if err != nil || kept == nil {
		return err
	}
	if err := s.Guard.Delete(ctx, s.TokenKinds.Secrets, kept, nil); err != nil {
		return err
	}
	s.SuperRecent.Remove(s.TokenKinds.Secrets.Name, kept)
	return nil
}

// Left is the Secret with the tokens of a tenant's object of which nothing else is left; nil if there is none.
func (s *Issuer) Left(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	if k.Down.Tokens == nil || o.Tenant != nil || o.Super != nil {
		return nil, nil
	}
	return s.keptTokens(ctx, o)
}

// isPast says whether a time has come. One that cannot be read has.
func isPast(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err != nil || time.Now().After(at)
}

// Bounds of what a tenant's apiserver may issue.
const (
	maxToken = 64 << 10
	// A token that lives for less would be asked for again and again; one that lives for more is renewed daily, as kubelets do.
	minTokenLife, maxTokenLife = time.Minute, 24 * time.Hour
)

// lifeOf is how long an issued token lives, up to the time by which it is renewed anyway.
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
