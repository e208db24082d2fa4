package integration

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

// driverName is the CSI driver that these tests simulate in the super cluster.
const driverName = "disk.example.com"

// playDriver simulates the sidecars of a CSI driver in the super cluster until
// the specs end: it provisions volumes for claims, expands them, and deletes
// released ones.
func playDriver() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	DeferCleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		for ctx.Err() == nil {
			if err := driveVolumes(ctx); err != nil && ctx.Err() == nil {
				logger.Error(err, "The driver failed, will retry")
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * kit.Poll):
			}
		}
	})
}

// driveVolumes reconciles all claims and volumes once. It leaves conflicts to
// the next time.
func driveVolumes(ctx context.Context) error {
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := errors.Join(super.Client.List(ctx, claims), super.Client.List(ctx, volumes)); err != nil {
		return err
	}
	var errs []error
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.Annotations["volume.kubernetes.io/storage-provisioner"] == driverName {
			errs = append(errs, provision(ctx, claim), grow(ctx, claim))
		}
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		released := v.Status.Phase == corev1.VolumeReleased && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		if v.Annotations["pv.kubernetes.io/provisioned-by"] == driverName && released {
			errs = append(errs, client.IgnoreNotFound(super.Client.Delete(ctx, v)))
		}
	}
	return errors.Join(errs...)
}

// provision creates the volume of a claim that has none.
func provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	secret := &corev1.SecretReference{Namespace: "platform", Name: platformsOwn}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driverName},
			Labels:      map[string]string{"pool": platformsOwn, "topology.kubernetes.io/zone": "a"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: claim.Spec.AccessModes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driverName, VolumeHandle: platformsOwn, VolumeAttributes: map[string]string{"server": platformsOwn},
				NodeStageSecretRef: secret, ControllerExpandSecretRef: secret,
			}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			MountOptions:                  []string{"password=" + platformsOwn},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              *claim.Spec.StorageClassName,
			VolumeMode:                    claim.Spec.VolumeMode,
		},
	}
	if err := super.Client.Create(ctx, volume); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// grow expands a claim to its requested size, as the resizer and a kubelet
// would together.
func grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(has) <= 0 {
		return nil
	}
	volume := &corev1.PersistentVolume{}
	if err := super.Client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		return err
	}
	volume.Spec.Capacity[corev1.ResourceStorage] = wanted
	if err := super.Client.Update(ctx, volume); err != nil {
		return err
	}
	claim.Status.Capacity[corev1.ResourceStorage] = wanted
	return super.Client.Status().Update(ctx, claim)
}
