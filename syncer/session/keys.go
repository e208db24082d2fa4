package session

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Keys find what the super cluster has of a tenant.
type Keys struct {
	super  *SuperCluster
	tenant *Tenant
	kinds  *Kinds
}

// NewKeys returns the keys of a tenant's objects in the super cluster.
func NewKeys(super *SuperCluster, tenant *Tenant, synced *Kinds) *Keys {
	return &Keys{super: super, tenant: tenant, kinds: synced}
}

// EachSuperKey calls f with the tenant's key of each object of a kind that the
// super cluster has of the tenant, or could show to it. A key may come more
// than once.
func (s *Keys) EachSuperKey(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	switch {
	case k.Down != nil && k.Down.Tokens != nil:
		return errors.Join(eachCopy(ctx, s, k, f), s.EachKeptTokens(ctx, func(kept client.Object) { f(TokensKey(kept)) }))
	case k.Down != nil:
		return eachCopy(ctx, s, k, f)
	case k.Up.Class, k.Up.Node && s.tenant.Identity().Sync.Nodes == tenancyv1alpha1.SyncAll:
		return s.super.CacheOf(k).EachKey(ctx, k, f)
	case k.Up.Node:
		return eachNode(ctx, s, func(name string) { f(client.ObjectKey{Name: name}) })
	}
	return eachShown(ctx, s, k, f)
}

// eachCopy calls f with the tenant's key of each copy of a kind.
func eachCopy(ctx context.Context, s *Keys, k *kinds.Kind, f func(client.ObjectKey)) error {
	return s.super.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.tenant.Lane(), func(obj client.Object) { f(k.Down.TenantKey(obj)) })
}

// eachNode calls f with the name of the node of each of the tenant's mirrored
// objects.
func eachNode(ctx context.Context, s *Keys, f func(string)) error {
	for k := range s.kinds.SyncedKinds() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		err := s.super.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.tenant.Lane(), func(obj client.Object) {
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

// eachShown calls f with the tenant's key of each object that belongs to one of
// the tenant's namespaces in the super cluster.
func eachShown(ctx context.Context, s *Keys, k *kinds.Kind, f func(client.ObjectKey)) error {
	spaces := s.super.Builtin[NamespaceKind]
	var failed error
	err := s.super.CacheOf(spaces).EachBy(ctx, spaces, caches.IndexCluster, s.tenant.Lane(), func(ns client.Object) {
		err := s.super.CacheOf(k).EachKeyBy(ctx, k, caches.IndexNamespace, ns.GetName(), func(superKey client.ObjectKey) {
			f(TenantKeyIn(translate.OriginOf(ns).Namespace, superKey))
		})
		failed = errors.Join(failed, err)
	})
	return errors.Join(err, failed)
}

// TenantKeyIn is the tenant's key of an object of the super cluster that
// belongs to one of its namespaces.
func TenantKeyIn(namespace string, superKey client.ObjectKey) client.ObjectKey {
	if superKey.Namespace == "" {
		namespace = ""
	}
	return client.ObjectKey{Namespace: namespace, Name: superKey.Name}
}

// EachKeptTokens calls f with each Secret that tokens of the tenant are kept
// in.
func (s *Keys) EachKeptTokens(ctx context.Context, f func(client.Object)) error {
	return s.super.CacheOf(s.super.TokenKinds.Secrets).EachBy(ctx, s.super.TokenKinds.Secrets, caches.IndexCluster, s.tenant.Lane(), f)
}

// TokensKey is the tenant's key of the object that has these tokens.
func TokensKey(kept client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: translate.OriginOf(kept).Namespace, Name: kept.GetAnnotations()[names.TokensOf]}
}

// UsesNode reports whether the tenant has an object on a node.
func (s *Keys) UsesNode(ctx context.Context, node string) (bool, error) {
	for k := range s.kinds.SyncedKinds() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		if used, err := s.super.CacheOf(k).Has(ctx, k, caches.IndexNode, caches.NodeValue(s.tenant.Lane(), node)); used || err != nil {
			return used, err
		}
	}
	return false, nil
}
