package guard

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uidPatch is a patch with the UID as a precondition: patching another object
// of the same name is a conflict.
type uidPatch struct {
	client.Patch
	uid types.UID
}

// SameObject adds the UID of the object that a patch was computed from as a
// precondition.
func SameObject(was client.Object, patch client.Patch) client.Patch {
	return uidPatch{Patch: patch, uid: was.GetUID()}
}

// Data returns the patch with the UID added.
func (p uidPatch) Data(obj client.Object) ([]byte, error) {
	data, err := p.Patch.Data(obj)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	meta, _ := patch["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		patch["metadata"] = meta
	}
	meta["uid"] = string(p.uid)
	return json.Marshal(patch)
}

// patchByKeys returns a patch that preserves concurrent additions to lists with
// keys.
func patchByKeys(was client.Object) client.Patch {
	if _, custom := was.(*unstructured.Unstructured); custom {
		return client.MergeFrom(was)
	}
	return client.StrategicMergeFrom(was)
}

// DeleteObject deletes exactly this object, not another of the same name. It
// returns nil if the object does not exist.
func DeleteObject(ctx context.Context, c client.Client, obj client.Object, grace *int64) error {
	uid := obj.GetUID()
	return client.IgnoreNotFound(c.Delete(ctx, obj, &client.DeleteOptions{
		Preconditions:      &metav1.Preconditions{UID: &uid},
		GracePeriodSeconds: grace,
	}))
}
