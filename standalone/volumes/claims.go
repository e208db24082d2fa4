package volumes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations that the scheduler and the binder of volumes write on a claim,
// and a provisioner on a volume.
const (
	selectedNode  = "volume.kubernetes.io/selected-node"
	provisioner   = "volume.kubernetes.io/storage-provisioner"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// claims makes a volume for each claim that waits for one.
type claims struct {
	client client.Client
	events events.EventRecorder
	dir    Directory
}

// Reconcile makes the volume of a claim. Binding it is the work of Kubernetes.
func (c *claims) Reconcile(ctx context.Context, claim *corev1.PersistentVolumeClaim) (ctrl.Result, error) {
	if !c.waits(claim) {
		return ctrl.Result{}, nil
	}
	if err := c.fits(claim); err != nil {
		c.events.Eventf(claim, nil, corev1.EventTypeWarning, "ProvisioningFailed", "Provision", "%s", err.Error())
		return ctrl.Result{}, nil
	}
	volume := c.volume(claim)
	if err := c.dir.add(volume.Name); err != nil {
		return ctrl.Result{}, err
	}
	if err := client.IgnoreAlreadyExists(c.client.Create(ctx, volume)); err != nil {
		return ctrl.Result{}, fmt.Errorf("make the volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return ctrl.Result{}, nil
}

// waits reports whether a claim is for this provisioner, and its first pod has
// been scheduled.
func (c *claims) waits(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil &&
		claim.Annotations[provisioner] == provisionerName && claim.Annotations[selectedNode] == c.dir.Node
}

// fits returns an error if a claim cannot have a volume here.
func (c *claims) fits(claim *corev1.PersistentVolumeClaim) error {
	switch {
	case claim.Spec.Selector != nil:
		return errors.New("a claim with a selector is for volumes that exist")
	case claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock:
		return errors.New("volumes are directories and cannot be block devices")
	}
	return nil
}

func (c *claims) volume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	onlyHere := corev1.NodeSelectorRequirement{
		Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{c.dir.Node},
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{provisionedBy: provisionerName},
	}}
	volume.Spec = corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		AccessModes:                   claim.Spec.AccessModes,
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: c.dir.there(name)}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{onlyHere}}},
		}},
	}
	if class := claim.Spec.StorageClassName; class != nil {
		volume.Spec.StorageClassName = *class
	}
	return volume
}
