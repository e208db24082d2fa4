package session

import (
	"context"
	"iter"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// Referred says whether an object of the tenant refers to this one.
func (s *Session) Referred(ctx context.Context, kind string, key client.ObjectKey) (bool, error) {
	for k := range s.referrers() {
		if found, err := s.Cache.Has(ctx, k, caches.IndexReferences, caches.ReferenceValue(key.Namespace, kind, key.Name)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// eachReferrer calls f with the request of each of the tenant's objects that refers to this one, if its kind goes down.
func (s *Session) eachReferrer(ctx context.Context, name string, key client.ObjectKey, f func(queue.Request)) error {
	for k := range s.referrers() {
		to := caches.ReferenceValue(key.Namespace, name, key.Name)
		err := s.Cache.EachKeyBy(ctx, k, caches.IndexReferences, to, func(key client.ObjectKey) {
			f(s.Request(k, key))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// referrers are the kinds that go down and whose objects refer to others.
func (s *Session) referrers() iter.Seq[*kinds.Kind] {
	return func(yield func(*kinds.Kind) bool) {
		for k := range s.Carried() {
			if k.Down == nil || k.Down.References == nil || s.Identity().Mode(k.Name) == tenancyv1alpha1.SyncOff {
				continue
			}
			if !yield(k) {
				return
			}
		}
	}
}

// UsesNode says whether the tenant has an object on a node.
func (s *Session) UsesNode(ctx context.Context, node string) (bool, error) {
	for k := range s.Carried() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		if used, err := s.CacheOf(k).Has(ctx, k, caches.IndexNode, caches.NodeValue(s.Lane(), node)); used || err != nil {
			return used, err
		}
	}
	return false, nil
}
