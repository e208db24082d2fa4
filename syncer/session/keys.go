package session

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// EachSuperKey calls f with the tenant's key of each object of a kind that the super cluster has of the tenant, or could show
// to it. A key may come more than once.
func (s *Session) EachSuperKey(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	switch {
	case k.Down != nil && k.Down.Tokens != nil:
		return errors.Join(eachCopy(ctx, s, k, f), s.EachKeptTokens(ctx, func(kept client.Object) { f(TokensKey(kept)) }))
	case k.Down != nil:
		return eachCopy(ctx, s, k, f)
	case k.Up.Node:
		return eachNode(ctx, s, func(name string) { f(client.ObjectKey{Name: name}) })
	case k.Up.Class:
		return s.CacheOf(k).EachKey(ctx, k, f)
	}
	return eachShown(ctx, s, k, f)
}

// eachCopy calls f with the tenant's key of each copy of a kind.
func eachCopy(ctx context.Context, s *Session, k *kinds.Kind, f func(client.ObjectKey)) error {
	return s.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.Lane(), func(obj client.Object) { f(k.Down.TenantKey(obj)) })
}

// eachNode calls f with the name of the node of each of the tenant's mirrored objects.
func eachNode(ctx context.Context, s *Session, f func(string)) error {
	for k := range s.Carried() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		err := s.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.Lane(), func(obj client.Object) {
			if node := k.Down.Mirror.Node(obj); node != "" {
				f(node)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachShown calls f with the tenant's key of each object that belongs to one of the tenant's namespaces in the super cluster.
func eachShown(ctx context.Context, s *Session, k *kinds.Kind, f func(client.ObjectKey)) error {
	spaces := s.Builtin[NamespaceKind]
	var failed error
	err := s.CacheOf(spaces).EachBy(ctx, spaces, caches.IndexCluster, s.Lane(), func(ns client.Object) {
		err := s.CacheOf(k).EachKeyBy(ctx, k, caches.IndexNamespace, ns.GetName(), func(superKey client.ObjectKey) {
			f(TenantKeyIn(translate.OriginOf(ns).Namespace, superKey))
		})
		failed = errors.Join(failed, err)
	})
	return errors.Join(err, failed)
}

// TenantKeyIn is the tenant's key of an object of the super cluster that belongs to one of its namespaces.
func TenantKeyIn(namespace string, superKey client.ObjectKey) client.ObjectKey {
	if superKey.Namespace == "" {
		namespace = ""
	}
	return client.ObjectKey{Namespace: namespace, Name: superKey.Name}
}

// EachKeptTokens calls f with each Secret that tokens of the tenant are kept in.
func (s *Session) EachKeptTokens(ctx context.Context, f func(client.Object)) error {
	return s.CacheOf(s.TokenKinds.Secrets).EachBy(ctx, s.TokenKinds.Secrets, caches.IndexCluster, s.Lane(), f)
}

// TokensKey is the tenant's key of the object that has these tokens.
func TokensKey(kept client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: translate.OriginOf(kept).Namespace, Name: kept.GetAnnotations()[names.TokensOf]}
}
