package session

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// Objects are the two sides of one object; nil where there is none. They are shared: nobody changes them.
type Objects struct {
	Key, SuperKey client.ObjectKey
	Tenant, Super client.Object
	// Identity is what the tenant was when they were read.
	Identity *translate.Tenant
}

// Presence is how an object stands on one side.
type Presence int

const (
	// Absent is a side without the object.
	Absent Presence = iota
	// Present is a side that has it.
	Present
	// Deleting is a side on which it is being deleted.
	Deleting
)

// Stand says how an object stands.
func Stand(obj client.Object) Presence {
	switch {
	case obj == nil:
		return Absent
	case obj.GetDeletionTimestamp() != nil:
		return Deleting
	}
	return Present
}

// True is the value of labels that say something by being there.
const True = "true"

// FromSuper says whether a tenant's object is one that was copied up. It is noted twice, so that one of the notes can be mended.
func FromSuper(tenant client.Object) bool {
	return tenant.GetLabels()[names.FromSuper] != "" || tenant.GetAnnotations()[names.FromSuper] != ""
}

// Mark notes in labels or annotations that an object was copied up.
func Mark(notes map[string]string) map[string]string {
	if notes == nil {
		notes = map[string]string{}
	}
	notes[names.FromSuper] = True
	return notes
}

// IsCopy says whether an object of the super cluster is that of some tenant.
func IsCopy(obj client.Object) bool { return translate.OriginOf(obj).Cluster != "" }

// IsOurs reports whether an object of the super cluster is a copy of this tenant's.
func (s *Session) IsOurs(super client.Object) bool {
	return translate.OriginOf(super).Cluster == s.Lane()
}

// MergedSuper is the copy with what it should hold.
func MergedSuper(k *kinds.Kind, super, desired client.Object) client.Object {
	merged := super.DeepCopyObject().(client.Object)
	k.Down.Merge(merged, desired)
	translate.Merge(merged, metav1.ObjectMeta{Labels: desired.GetLabels(), Annotations: desired.GetAnnotations()})
	return merged
}

// TenantObject is the tenant's object as far as is known; nil if there is none.
func (s *Session) TenantObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	if s.Asleep(k) {
		return nil, nil
	}
	cached, err := s.Cache.Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.TenantRecent.Latest(k.Name, key, cached), nil
}

// SuperObject is the super cluster's object as far as is known; nil if there is none.
func (s *Session) SuperObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	cached, err := s.CacheOf(k).Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.SuperRecent.Latest(k.Name, key, cached), nil
}

// SuperNamespace is what is known of a namespace of the super cluster; nil if it does not exist.
func (s *Session) SuperNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	obj, err := s.SuperObject(ctx, s.Builtin[NamespaceKind], client.ObjectKey{Name: name})
	if err != nil || obj == nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

// LiveCopy asks the super cluster for an object; nil if there is none.
func (s *Session) LiveCopy(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	found := k.Fresh()
	if err := s.API.GetAPIReader().Get(ctx, key, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}

// PatchTenant changes a tenant's object if it differs, and returns it as it is then; nil if it is gone.
func (s *Session) PatchTenant(ctx context.Context, k *kinds.Kind, was, now client.Object) (client.Object, error) {
	if was == now || wire.Equal(was, now) {
		return was, nil
	}
	if err := s.Client.Patch(ctx, now, guard.SameObject(was, client.MergeFrom(was))); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s.TenantRecent.Put(k.Name, k.CachedTenant(now))
	return now, nil
}

// PatchTenantStatus changes the status of a tenant's object if it differs.
func (s *Session) PatchTenantStatus(ctx context.Context, k *kinds.Kind, was, now client.Object) error {
	if wire.Equal(was, now) {
		return nil
	}
	if err := s.Client.Status().Patch(ctx, now, guard.StatusPatch{Was: was}); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.TenantRecent.Put(k.Name, now)
	return nil
}

// Report creates an event about one of the tenant's objects. The same cause counts up one event.
func (s *Session) Report(ctx context.Context, obj client.Object, reason, message string) error {
	reporter := pending.Reporter{Client: s.Client, Reader: s.Cluster.GetAPIReader(), Scheme: s.Cluster.GetScheme()}
	return reporter.Report(ctx, obj, reason, message)
}

// IsCopyOf reports whether a copy of this origin is that of this tenant's object, and not of an earlier one of the name.
func IsCopyOf(origin translate.Origin, tenant client.Object) bool {
	return tenant != nil && origin.UID == tenant.GetUID()
}
