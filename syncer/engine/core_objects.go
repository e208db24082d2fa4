package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// objects are the two sides of one object; nil where there is none. They are shared: nobody changes them.
type objects struct {
	key, superKey client.ObjectKey
	tenant, super client.Object
	// identity is what the tenant was when they were read.
	identity *translate.Tenant
}

// presence is how an object stands on one side.
type presence int

const (
	absent presence = iota
	present
	deleting
)

// stand says how an object stands.
func stand(obj client.Object) presence {
	switch {
	case obj == nil:
		return absent
	case obj.GetDeletionTimestamp() != nil:
		return deleting
	}
	return present
}

// set is the value of labels that say something by being there.
const set = "true"

// fromSuper says whether a tenant's object is one that was copied up. It is noted twice, so that one of the notes can be mended.
func fromSuper(tenant client.Object) bool {
	return tenant.GetLabels()[names.FromSuper] != "" || tenant.GetAnnotations()[names.FromSuper] != ""
}

// mark notes in labels or annotations that an object was copied up.
func mark(notes map[string]string) map[string]string {
	if notes == nil {
		notes = map[string]string{}
	}
	notes[names.FromSuper] = set
	return notes
}

// isCopy says whether an object of the super cluster is that of some tenant.
func isCopy(obj client.Object) bool { return translate.OriginOf(obj).Cluster != "" }

// isOurs reports whether an object of the super cluster is a copy of this tenant's.
func (s *session) isOurs(super client.Object) bool {
	return translate.OriginOf(super).Cluster == s.lane()
}

// mergedSuper is the copy with what it should hold.
func mergedSuper(k *kinds.Kind, super, desired client.Object) client.Object {
	merged := super.DeepCopyObject().(client.Object)
	k.Down.Merge(merged, desired)
	translate.Merge(merged, metav1.ObjectMeta{Labels: desired.GetLabels(), Annotations: desired.GetAnnotations()})
	return merged
}

// tenantObject is the tenant's object as far as is known; nil if there is none.
func (s *session) tenantObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	if s.asleep(k) {
		return nil, nil
	}
	cached, err := s.cache.Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.tenantRecent.Latest(k.Name, key, cached), nil
}

// superObject is the super cluster's object as far as is known; nil if there is none.
func (s *session) superObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	cached, err := s.cacheOf(k).Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.superRecent.Latest(k.Name, key, cached), nil
}

// superNamespace is what is known of a namespace of the super cluster; nil if it does not exist.
func (s *session) superNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	obj, err := s.superObject(ctx, s.builtin[namespaceKind], client.ObjectKey{Name: name})
	if err != nil || obj == nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

// liveCopy asks the super cluster for an object; nil if there is none.
func (s *session) liveCopy(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	found := k.Fresh()
	if err := s.super.GetAPIReader().Get(ctx, key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}

// patchTenant changes a tenant's object if it differs, and returns it as it is then; nil if it is gone.
func (s *session) patchTenant(ctx context.Context, k *kinds.Kind, was, now client.Object) (client.Object, error) {
	if was == now || wire.Equal(was, now) {
		return was, nil
	}
	if err := s.client.Patch(ctx, now, guard.SameObject(was, client.MergeFrom(was))); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s.tenantRecent.Put(k.Name, k.CachedTenant(now))
	return now, nil
}

// patchTenantStatus changes the status of a tenant's object if it differs.
func (s *session) patchTenantStatus(ctx context.Context, k *kinds.Kind, was, now client.Object) error {
	if wire.Equal(was, now) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, now, guard.StatusPatch{Was: was}); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.tenantRecent.Put(k.Name, now)
	return nil
}
