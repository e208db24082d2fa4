// Package tokens issues the service account tokens of a tenant's objects, and
// keeps them in Secrets beside the copies.
package tokens

import (
	"context"
	"maps"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// secretReader reads the metadata of the Secrets that tokens are kept in. A
// [session.Session] is one.
type secretReader interface {
	SuperObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error)
	EachKeptTokens(ctx context.Context, f func(client.Object)) error
}

// secretWriter writes these Secrets. A [guard.Guard] is one.
type secretWriter interface {
	Apply(ctx context.Context, namespace string, secret runtime.ApplyConfiguration) error
	Delete(ctx context.Context, k *kinds.Kind, secret client.Object, grace *int64) error
}

// enqueuer enqueues requests for a tenant's objects. A [session.Session] is
// one.
type enqueuer interface {
	Request(k *kinds.Kind, key client.ObjectKey) queue.Request
	Enqueue(r queue.Request, priority int)
}

// Issuer issues the tokens of one tenant's objects and keeps them.
type Issuer struct {
	// secrets is the kind of the Secrets that tokens are kept in.
	secrets *kinds.Kind
	reader  secretReader
	writer  secretWriter
	// recent holds writes that the reader does not show yet.
	recent *caches.Recent
	// apiserver is the tenant's, which issues the tokens.
	apiserver client.SubResourceClientConstructor
	identity  func() translate.Tenant
	queue     enqueuer
	// synced returns the kind whose objects have tokens; nil while the tenant's
	// objects of the kind are not synced.
	synced func() *kinds.Kind
}

// NewIssuer returns the issuer of a tenant's tokens.
func NewIssuer(s *session.Session) *Issuer {
	return &Issuer{
		secrets: s.TokenKinds.Secrets, reader: s, writer: s.Guard, recent: s.SuperRecent,
		apiserver: s.Client, identity: s.Identity, queue: s,
		synced: func() *kinds.Kind {
			if of := s.TokenKinds.Of; of != nil && s.Begun.Load() {
				return s.Kind(of.Name)
			}
			return nil
		},
	}
}

// SecretType returns the type by which an apiserver knows Secrets.
func SecretType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"}
}

// Ensure makes sure that the tokens of a tenant's object are beside its copy,
// and renews those that are due.
func (s *Issuer) Ensure(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	kept, missing, err := s.Compare(ctx, k, o)
	if due := kept != nil && isPast(kept.GetAnnotations()[names.TokensRenewal], time.Now()); err != nil || !missing && !due {
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
	return s.keep(ctx, o, issued, renewal)
}

// Compare returns the Secret with the tokens of a tenant's object, nil if there
// is none, and reports whether tokens are missing. An object needs none while
// its copy is being deleted or has ended.
func (s *Issuer) Compare(ctx context.Context, k *kinds.Kind, o session.Objects) (kept client.Object, missing bool, err error) {
	if k.Down.Tokens == nil || o.Super != nil && (session.Stand(o.Super) != session.Present || k.Down.Mirror.Ended(o.Super)) {
		return nil, false, nil
	}
	kept, err = s.kept(ctx, o)
	if err != nil || kept != nil && session.IsCopyOf(translate.OriginOf(kept), o.Tenant) {
		return kept, false, err
	}
	return nil, len(k.Down.Tokens(o.Tenant).Wanted) > 0, nil
}

// kept returns the Secret with an object's tokens; nil if there is none.
func (s *Issuer) kept(ctx context.Context, o session.Objects) (client.Object, error) {
	key := client.ObjectKey{Namespace: o.SuperKey.Namespace, Name: names.TokenSecret(o.SuperKey.Name)}
	return s.reader.SuperObject(ctx, s.secrets, key)
}

// EnqueueRenewals enqueues the objects whose tokens are due. The patrol calls
// it.
func (s *Issuer) EnqueueRenewals(ctx context.Context) {
	of := s.synced()
	if of == nil {
		return
	}
	now := time.Now()
	err := s.reader.EachKeptTokens(ctx, func(kept client.Object) {
		if isPast(kept.GetAnnotations()[names.TokensRenewal], now) {
			s.queue.Enqueue(s.queue.Request(of, session.TokensKey(kept)), queue.PriorityLow)
		}
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot look for tokens to renew", "tenant", s.identity().Key)
	}
}

// issue requests a token from the tenant's apiserver, and returns it with the
// time of its renewal.
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
	if err := s.apiserver.SubResource("token").Create(ctx, of, request); err != nil {
		return "", now, classify(err, account)
	}
	life, err := lifeOf(request.Status, now)
	if err != nil {
		return "", now, classify(err, account)
	}
	return request.Status.Token, now.Add(renewAfter(life)), nil
}

// keep writes tokens into the Secret beside the copy, and creates the Secret if
// it does not exist.
func (s *Issuer) keep(ctx context.Context, o session.Objects, issued map[string][]byte, renewal time.Time) error {
	t := s.identity()
	annotations := t.Stamp(o.Tenant)
	annotations[names.TokensOf] = o.Key.Name
	annotations[names.TokensRenewal] = renewal.Format(time.RFC3339)
	secret := corev1ac.Secret(names.TokenSecret(o.Key.Name), o.SuperKey.Namespace).
		WithLabels(t.Project()).WithLabels(map[string]string{names.Tokens: session.True}).
		WithAnnotations(annotations).WithType(corev1.SecretTypeOpaque).WithData(issued)
	if err := s.writer.Apply(ctx, o.SuperKey.Namespace, secret); err != nil {
		return pending.Classify(err)
	}
	s.recent.Put(s.secrets.Name, &metav1.PartialObjectMetadata{TypeMeta: SecretType(), ObjectMeta: metav1.ObjectMeta{
		Namespace: *secret.Namespace, Name: *secret.Name, UID: *secret.UID, ResourceVersion: *secret.ResourceVersion, Annotations: annotations,
	}})
	return nil
}

// Drop deletes the tokens of a tenant's object when the object and its copy are
// gone.
func (s *Issuer) Drop(ctx context.Context, k *kinds.Kind, o session.Objects) error {
	kept, err := s.Left(ctx, k, o)
	if err != nil || kept == nil {
		return err
	}
	if err := s.writer.Delete(ctx, s.secrets, kept, nil); err != nil {
		return err
	}
	s.recent.Remove(s.secrets.Name, kept)
	return nil
}

// Left returns the Secret with the tokens of a tenant's object when the object
// and its copy are gone; nil if there is none.
func (s *Issuer) Left(ctx context.Context, k *kinds.Kind, o session.Objects) (client.Object, error) {
	if k.Down.Tokens == nil || o.Tenant != nil || o.Super != nil {
		return nil, nil
	}
	return s.kept(ctx, o)
}
