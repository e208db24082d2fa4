package syncup

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// objects are the super cluster's object, what the tenant should be shown of it,
// and the tenant's copy; nil if there is none.
type objects struct {
	super, shown, tenant client.Object
}

// mergedBack returns the super cluster's object with what the tenant changed of
// it; nil if that is nothing.
func mergedBack(k *kinds.Kind, v kinds.View, o objects) client.Object {
	if k.Up.Back == nil {
		return nil
	}
	merged := o.super.DeepCopyObject().(client.Object)
	k.Up.Back(v, merged, o.tenant)
	if wire.Equal(merged, o.super) {
		return nil
	}
	return merged
}

// mergedUp is the tenant's copy with what it should hold.
func mergedUp(k *kinds.Kind, tenant, desired client.Object) client.Object {
	merged := tenant.DeepCopyObject().(client.Object)
	k.Up.Merge(merged, desired)
	if !k.Up.Expires {
		merged.SetLabels(session.Mark(maps.Clone(merged.GetLabels())))
		merged.SetAnnotations(session.Mark(maps.Clone(merged.GetAnnotations())))
	}
	return merged
}
