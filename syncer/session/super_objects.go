package session

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// SuperObjects are the objects in the super cluster, as one tenant's writes
// have left them.
type SuperObjects struct {
	super *SuperCluster
	// SuperRecent are the writes that the caches do not have yet.
	SuperRecent *caches.Recent
}

// NewSuperObjects returns the objects of a super cluster.
func NewSuperObjects(super *SuperCluster) *SuperObjects {
	return &SuperObjects{super: super, SuperRecent: caches.NewRecent()}
}

// SuperObject is the super cluster's object as far as is known; nil if there is
// none.
func (s *SuperObjects) SuperObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	cached, err := s.super.CacheOf(k).Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.SuperRecent.Latest(k.Name, key, cached), nil
}

// EachIn calls f with each object of a kind in a namespace of the super cluster.
func (s *SuperObjects) EachIn(ctx context.Context, k *kinds.Kind, namespace string, f func(client.Object)) error {
	return s.super.CacheOf(k).EachBy(ctx, k, toolscache.NamespaceIndex, namespace, f)
}

// SuperNamespace is what is known of a namespace of the super cluster; nil if
// it does not exist.
func (s *SuperObjects) SuperNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	obj, err := s.SuperObject(ctx, s.super.Builtin[NamespaceKind], client.ObjectKey{Name: name})
	if err != nil || obj == nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

// LiveCopy asks the super cluster for an object; nil if there is none.
func (s *SuperObjects) LiveCopy(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	found := k.Fresh()
	if err := s.super.API.GetAPIReader().Get(ctx, key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}
