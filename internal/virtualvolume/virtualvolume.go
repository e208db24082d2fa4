// Package virtualvolume decides what a tenant sees of a PersistentVolume of the super
// cluster: what its claim depends on, and nothing of the storage.
package virtualvolume

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// ProvisionedBy is the annotation with the driver that created a volume and will
// delete it.
const ProvisionedBy = "pv.kubernetes.io/provisioned-by"

// OtherDriver is the driver of volumes without a CSI driver, as tenants see them.
const OtherDriver = "super." + names.Domain

// ClaimNamespace returns the namespace of the claim that a volume is or was bound
// to. A volume that is reserved for a claim by name has no UID in its reference yet,
// and belongs to no tenant.
func ClaimNamespace(super *corev1.PersistentVolume) string {
	if ref := super.Spec.ClaimRef; ref != nil && ref.UID != "" && super.Status.Phase != corev1.VolumePending {
		return ref.Namespace
	}
	return ""
}

// Of returns a volume as tenants see it, without its claim.
//
// A volume must have a source, which describes its place in the super cluster's
// storage, with secrets. The tenant sees a CSI source with the driver's name, and
// the volume's own name as the handle. Mount options, which can contain passwords,
// and labels of the super cluster other than those of its topology are not shown.
func Of(super *corev1.PersistentVolume) *corev1.PersistentVolume {
	own := super.Spec.DeepCopy()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: topology(super.Labels)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      own.Capacity,
			AccessModes:                   own.AccessModes,
			PersistentVolumeSource:        shownSource(super),
			PersistentVolumeReclaimPolicy: ReclaimPolicy(super),
			StorageClassName:              own.StorageClassName,
			VolumeMode:                    own.VolumeMode,
			NodeAffinity:                  own.NodeAffinity,
			VolumeAttributesClassName:     own.VolumeAttributesClassName,
		},
		Status: corev1.PersistentVolumeStatus{
			Phase: super.Status.Phase, Reason: super.Status.Reason, Message: super.Status.Message,
		},
	}
	// A binder in the tenant leaves deletion of the volume to the driver with
	// this name.
	if by := super.Annotations[ProvisionedBy]; by != "" && !strings.HasPrefix(by, "kubernetes.io/") {
		volume.Annotations = map[string]string{ProvisionedBy: by}
	}
	return volume
}

// topology returns the labels with the topology of a volume.
func topology(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, "topology.kubernetes.io/") })
	return out
}

// shownSource returns the source for tenants.
func shownSource(super *corev1.PersistentVolume) corev1.PersistentVolumeSource {
	shown := &corev1.CSIPersistentVolumeSource{Driver: OtherDriver, VolumeHandle: super.Name}
	if csi := super.Spec.CSI; csi != nil {
		shown.Driver = csi.Driver
	}
	return corev1.PersistentVolumeSource{CSI: shown}
}

// ReclaimPolicy returns the policy for tenants. With Recycle, which is
// deprecated, a binder in the tenant would try to clean the volume; Retain
// describes that the tenant keeps it.
func ReclaimPolicy(super *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if super.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		return corev1.PersistentVolumeReclaimRetain
	}
	return super.Spec.PersistentVolumeReclaimPolicy
}
