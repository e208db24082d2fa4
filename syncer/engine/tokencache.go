package engine

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/tokens"
)

// addTokens prepares for the kind that has tokens.
func addTokens(mgr mcmanager.Manager, e *session.SuperCluster) error {
	for _, k := range e.Builtin {
		if k.Down != nil && k.Down.Tokens != nil {
			e.TokenKinds.Of = k
		}
	}
	if e.TokenKinds.Of == nil {
		return nil
	}
	kept, err := tokens.NewCache(e.API)
	if err != nil {
		return err
	}
	e.Caches[kinds.TokenSecrets] = caches.NewReader(kept)
	e.TokenKinds.Secrets = tokens.SecretKind()
	return mgr.GetLocalManager().Add(kept)
}

// watchTokens has a Secret with tokens lead to the object that needs it when it
// vanishes, and when it comes without having been asked for, as after a write
// whose answer was lost: the object may be gone.
func watchTokens(
	ctx context.Context, e *session.SuperCluster, owner func(client.Object) *engagement,
) (toolscache.DoneChecker, error) {
	secrets := e.TokenKinds.Secrets
	opened, err := e.CacheOf(secrets).Open(ctx, secrets, toolscache.Indexers{caches.IndexCluster: caches.ByTenant()})
	if err != nil {
		return nil, fmt.Errorf("watching tokens: %w", err)
	}
	review := func(s *engagement, obj client.Object) {
		s.Enqueue(s.Request(e.TokenKinds.Of, session.TokensKey(obj)), queue.PriorityLow)
	}
	come := func(obj client.Object) {
		if s := owner(obj); s != nil && !s.SuperRecent.Seen(secrets.Name, obj) {
			review(s, obj)
		}
	}
	registration, err := opened.AddEventHandler(caches.Handler{
		Add:    func(obj client.Object, _ bool) { come(obj) },
		Update: func(_, obj client.Object) { come(obj) },
		Remove: func(obj client.Object, _ bool) {
			if s := owner(obj); s != nil {
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
