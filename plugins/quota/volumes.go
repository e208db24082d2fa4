package quota

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// leftVolumes is the ledger's resource for volumes whose claim is gone: they
// count like the claim until they are deleted as well.
const leftVolumes corev1.ResourceName = "volumes"

// followVolumes registers handlers that update the ledger for volumes.
func (q *Quota) followVolumes(ctx context.Context) (toolscache.DoneChecker, error) {
	show := func(obj any) {
		if v, ok := obj.(*corev1.PersistentVolume); ok {
			q.chargeVolume(ctx, v)
		}
	}
	return q.follow(ctx, &corev1.PersistentVolume{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: show,
		UpdateFunc: func(was, now any) {
			if v, ok := was.(*corev1.PersistentVolume); ok && !sameClaim(v, now) {
				q.removeVolume(ctx, v)
			}
			show(now)
		},
		DeleteFunc: func(obj any) {
			if v, ok := lastknown.Of[*corev1.PersistentVolume](obj); ok {
				q.removeVolume(ctx, v)
			}
		},
	})
}

// sameClaim reports whether a volume is bound to the same claim as before.
func sameClaim(was *corev1.PersistentVolume, now any) bool {
	v, ok := now.(*corev1.PersistentVolume)
	return ok && was.Spec.ClaimRef != nil && v.Spec.ClaimRef != nil && was.Spec.ClaimRef.UID == v.Spec.ClaimRef.UID
}

// chargeVolumes charges for all volumes without a claim, and for those of later
// events. It must not run before all claims are known.
func (q *Quota) chargeVolumes(ctx context.Context) error {
	q.volumesKnown.Store(true)
	list := &corev1.PersistentVolumeList{}
	if err := q.env.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	for i := range list.Items {
		q.chargeVolume(ctx, &list.Items[i])
	}
	return nil
}

// chargeVolumeOf updates the charge for the volume of a claim that was created,
// changed or deleted.
func (q *Quota) chargeVolumeOf(ctx context.Context, obj client.Object) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName == "" || !q.volumesKnown.Load() {
		return
	}
	v := &corev1.PersistentVolume{}
	switch err := q.env.Cache.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, v); {
	case err == nil:
		q.chargeVolume(ctx, v)
	case !apierrors.IsNotFound(err):
		q.env.Logger.Error(err, "Cannot read the volume of a claim", "volume", claim.Spec.VolumeName)
	}
}

// chargeVolume charges for a volume if its claim is gone, and not if it exists.
// Caches are ahead of their events, so the later of two concurrent events sees
// the final state.
func (q *Quota) chargeVolume(ctx context.Context, v *corev1.PersistentVolume) {
	if !q.volumesKnown.Load() {
		return
	}
	q.volumes.Lock()
	defer q.volumes.Unlock()
	tenant := q.ownerOf(ctx, v)
	if tenant == "" {
		return
	}
	left, err := q.isLeft(ctx, v)
	if err != nil {
		q.env.Logger.Error(err, "Cannot read the claim of a volume", "volume", v.Name)
		return
	}
	id := object{count: leftVolumes, key: client.ObjectKeyFromObject(v)}
	if !left {
		q.noteChange(tenant, q.ledger.remove(tenant, id, v.UID, time.Now()))
		return
	}
	q.noteChange(tenant, q.ledger.observe(tenant, id, charge{uid: v.UID, version: v.ResourceVersion, used: volumeUsage(v)}))
}

func (q *Quota) removeVolume(ctx context.Context, v *corev1.PersistentVolume) {
	q.volumes.Lock()
	defer q.volumes.Unlock()
	if tenant := q.ownerOf(ctx, v); tenant != "" {
		id := object{count: leftVolumes, key: client.ObjectKeyFromObject(v)}
		q.noteChange(tenant, q.ledger.remove(tenant, id, v.UID, time.Now()))
	}
}

// isLeft reports whether a volume was bound to a claim that is gone.
func (q *Quota) isLeft(ctx context.Context, v *corev1.PersistentVolume) (bool, error) {
	ref := v.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return false, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := q.env.Cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && claim.UID != ref.UID, err
}

// ownerOf returns the tenant whose claim a volume is or was bound to; empty for
// none. It is found by the namespace of the claim or, if that is gone, by its
// name.
func (q *Quota) ownerOf(ctx context.Context, v *corev1.PersistentVolume) string {
	if v.Spec.ClaimRef == nil {
		return ""
	}
	name := v.Spec.ClaimRef.Namespace
	ns := &corev1.Namespace{}
	if err := q.env.Cache.Get(ctx, client.ObjectKey{Name: name}, ns, client.UnsafeDisableDeepCopy); err == nil {
		return plugins.TenantOf(ns)
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	owner := ""
	for key := range q.tenants {
		if names.BeginsNamespace(key, name) && len(key) > len(owner) {
			owner = key
		}
	}
	return owner
}

// volumeUsage returns the usage of a volume: that of a claim of its size.
func volumeUsage(v *corev1.PersistentVolume) corev1.ResourceList {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = v.Spec.Capacity
	claim.Spec.StorageClassName = &v.Spec.StorageClassName
	return claimUsage(claim, time.Time{})
}
