package volumes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// released removes volumes whose claims are gone.
type released struct {
	client client.Client
	dir    Directory
}

// Reconcile removes a volume and its data.
func (r *released) Reconcile(ctx context.Context, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	if volume.Annotations[provisionedBy] != provisionerName || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
		volume.Spec.Local == nil || volume.Spec.Local.Path != r.dir.there(volume.Name) {
		return ctrl.Result{}, nil
	}
	if err := r.dir.remove(volume.Name); err != nil {
		return ctrl.Result{}, err
	}
	err := r.client.Delete(ctx, volume, client.Preconditions{UID: &volume.UID})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("delete the volume %s: %w", volume.Name, err)
	}
	return ctrl.Result{}, nil
}
