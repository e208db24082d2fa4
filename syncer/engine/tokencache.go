package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/tokens"
)

// addTokens prepares for the kind that has tokens.
func (e *Engine) addTokens(mgr mcmanager.Manager) error {
	for _, k := range e.Builtin {
		if k.Down != nil && k.Down.Tokens != nil {
			e.TokenKinds.Of = k
		}
	}
	if e.TokenKinds.Of == nil {
		return nil
	}
	kept, err := cache.New(e.API.GetConfig(), cache.Options{
		HTTPClient:           e.API.GetHTTPClient(),
		Scheme:               e.API.GetScheme(),
		Mapper:               e.API.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{names.Tokens: session.True}),
		DefaultTransform:     stripTokens,
		NewInformer:          informer.New,
	})
	if err != nil {
		return fmt.Errorf("making the cache of tokens: %w", err)
	}
	e.Caches[kinds.TokenSecrets] = caches.NewReader(kept)
	e.TokenKinds.Secrets = &kinds.Kind{
		Name: "Tokens", GVK: corev1.SchemeGroupVersion.WithKind(tokens.SecretType().Kind),
		Object: &metav1.PartialObjectMetadata{TypeMeta: tokens.SecretType()}, Source: kinds.TokenSecrets,
	}
	return mgr.GetLocalManager().Add(kept)
}

// stripTokens leaves of a Secret's metadata what is looked at.
func stripTokens(obj any) (any, error) {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		meta.ManagedFields, meta.Labels = nil, nil
	}
	return obj, nil
}

// watchTokens has a Secret with tokens lead to the object that needs it when it vanishes, and when it comes without having been asked
// for, as after a write whose answer was lost: the object may be gone.
func (e *Engine) watchTokens(ctx context.Context) (toolscache.DoneChecker, error) {
	secrets := e.TokenKinds.Secrets
	opened, err := e.CacheOf(secrets).Open(ctx, secrets, toolscache.Indexers{caches.IndexCluster: caches.ByTenant()})
	if err != nil {
		return nil, fmt.Errorf("watching tokens: %w", err)
	}
	review := func(s *engagement, obj client.Object) {
		s.Enqueue(s.Request(e.TokenKinds.Of, session.TokensKey(obj)), queue.PriorityLow)
	}
	come := func(obj client.Object) {
		if s := e.owner(obj); s != nil && !s.SuperRecent.Seen(secrets.Name, obj) {
			review(s, obj)
		}
	}
	registration, err := opened.AddEventHandler(caches.Handler{
		Add:    func(obj client.Object, _ bool) { come(obj) },
		Update: func(_, obj client.Object) { come(obj) },
		Remove: func(obj client.Object, _ bool) {
			if s := e.owner(obj); s != nil {
				s.SuperRecent.Ended(secrets.Name, obj)
				review(s, obj)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching tokens: %w", err)
	}
	return registration.HasSyncedChecker(), nil
}
