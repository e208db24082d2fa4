package volumes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	applystoragev1 "k8s.io/client-go/applyconfigurations/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	className = "local"
	// isDefault marks the class of claims that name none.
	isDefault = "storageclass.kubernetes.io/is-default-class"
)

// offer makes the class that tenants see. A volume is made when its first pod
// has been scheduled.
func offer(ctx context.Context, c client.Client) error {
	class := applystoragev1.StorageClass(className).
		WithLabels(map[string]string{names.Public: "true"}).
		WithAnnotations(map[string]string{isDefault: "true"}).
		WithProvisioner(provisionerName).
		WithReclaimPolicy(corev1.PersistentVolumeReclaimDelete).
		WithVolumeBindingMode(storagev1.VolumeBindingWaitForFirstConsumer)
	if err := c.Apply(ctx, class, client.FieldOwner("vc-standalone"), client.ForceOwnership); err != nil {
		return fmt.Errorf("offer the StorageClass %s: %w", className, err)
	}
	return nil
}
