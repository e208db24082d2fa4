package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// uidPatch is a patch that only applies to the object with this UID: another one of the same name is a conflict.
type uidPatch struct {
	client.Patch
	uid types.UID
}

// sameObject ties a patch to the object that it was computed from.
func sameObject(was client.Object, patch client.Patch) client.Patch {
	return uidPatch{Patch: patch, uid: was.GetUID()}
}

// Data is the patch with the UID added.
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

// patchByKeys is a patch that leaves alone what others add to a list meanwhile, where the kind's lists have keys.
func patchByKeys(was client.Object) client.Patch {
	if _, custom := was.(*unstructured.Unstructured); custom {
		return client.MergeFrom(was)
	}
	return client.StrategicMergeFrom(was)
}

// removeObject deletes exactly this object, not another of the same name. One that is gone is no error.
func removeObject(ctx context.Context, c client.Client, obj client.Object, grace *int64) error {
	uid := obj.GetUID()
	return client.IgnoreNotFound(c.Delete(ctx, obj, &client.DeleteOptions{
		Preconditions:      &metav1.Preconditions{UID: &uid},
		GracePeriodSeconds: grace,
	}))
}

// patchTenant changes a tenant's object if it differs, and returns it as it is then; nil if it is gone.
func (s *session) patchTenant(ctx context.Context, k *kinds.Kind, was, now client.Object) (client.Object, error) {
	if was == now || wire.Equal(was, now) {
		return was, nil
	}
	if err := s.client.Patch(ctx, now, sameObject(was, client.MergeFrom(was))); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s.tenantRecent.put(k.Name, k.CachedTenant(now))
	return now, nil
}

// patchTenantStatus changes the status of a tenant's object if it differs.
func (s *session) patchTenantStatus(ctx context.Context, k *kinds.Kind, was, now client.Object) error {
	if wire.Equal(was, now) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, now, statusPatch{was}); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.tenantRecent.put(k.Name, now)
	return nil
}
