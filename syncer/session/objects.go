package session

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Objects are the two sides of one object; nil where there is none. They are
// shared, so no caller may change them.
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

// FromSuper reports whether a tenant's object was synced up. Two marks say so,
// so that one that was removed can be restored.
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

// IsCopy reports whether an object of the super cluster is that of some tenant.
func IsCopy(obj client.Object) bool { return translate.OriginOf(obj).Cluster != "" }

// MergedSuper is the copy with what it should hold.
func MergedSuper(k *kinds.Kind, super, desired client.Object) client.Object {
	merged := super.DeepCopyObject().(client.Object)
	k.Down.Merge(merged, desired)
	translate.Merge(merged, metav1.ObjectMeta{Labels: desired.GetLabels(), Annotations: desired.GetAnnotations()})
	return merged
}

// IsCopyOf reports whether a copy of this origin is that of this tenant's
// object, and not of an earlier one of the name.
func IsCopyOf(origin translate.Origin, tenant client.Object) bool {
	return tenant != nil && origin.UID == tenant.GetUID()
}
