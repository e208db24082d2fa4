package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// provisionedBy is the annotation with the driver that created a volume and
// will delete it.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// otherDriver is the driver of volumes without a CSI driver, as tenants see
// them.
const otherDriver = "super." + names.Domain

// PersistentVolume is synced up to the tenant whose claim it is bound to, until
// it is deleted: also after the deletion of the claim, since its reclaim policy
// then decides about the data. The tenant may only change the policy if
// spec.policy allows it: a retained volume takes the platform's storage, and
// the platform may want to retain one that the tenant would delete.
//
// A volume must have a source, which describes its place in the super cluster's
// storage, with secrets. The tenant sees a CSI source with the driver's name,
// and the volume's own name as the handle. Mount options, which can contain
// passwords, and labels of the super cluster other than those of its topology
// are not synced up.
func PersistentVolume() kinds.Flow {
	return kinds.Up[*corev1.PersistentVolume]{
		Name:          "PersistentVolume",
		Object:        &corev1.PersistentVolume{},
		List:          &corev1.PersistentVolumeList{},
		Summary:       "claims down; their volumes up",
		ClusterScoped: true,
		Optional:      true,
		Namespace:     claimNamespace,
		Desired:       tenantVolume,
		Merge:         mergeVolume,
		Replace: func(tenant, desired *corev1.PersistentVolume) bool {
			return !semanticEqual(tenant.Spec.PersistentVolumeSource, desired.Spec.PersistentVolumeSource) ||
				!semanticEqual(tenant.Spec.VolumeMode, desired.Spec.VolumeMode)
		},
		Status: func(tenant, desired *corev1.PersistentVolume) {
			tenant.Status.Phase = desired.Status.Phase
			tenant.Status.Reason, tenant.Status.Message = desired.Status.Reason, desired.Status.Message
		},
		Back: func(v kinds.View, super, tenant *corev1.PersistentVolume) {
			policy := tenant.Spec.PersistentVolumeReclaimPolicy
			allowed := slices.Contains(v.Tenant.Policy.AllowReclaimPolicies, tenancyv1alpha1.ReclaimPolicy(policy))
			if allowed && policy != reclaimPolicy(super) { // Recycle is shown as Retain
				super.Spec.PersistentVolumeReclaimPolicy = policy
			}
		},
	}
}

// claimNamespace returns the namespace of the claim that a volume is or was
// bound to. A volume that is reserved for a claim by name has no UID in its
// reference yet, and belongs to no tenant.
func claimNamespace(super *corev1.PersistentVolume) string {
	if ref := super.Spec.ClaimRef; ref != nil && ref.UID != "" && super.Status.Phase != corev1.VolumePending {
		return ref.Namespace
	}
	return ""
}

func tenantVolume(v kinds.View, super *corev1.PersistentVolume) *corev1.PersistentVolume {
	own := super.Spec.DeepCopy()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: super.Name, Labels: topology(super.Labels)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      own.Capacity,
			AccessModes:                   own.AccessModes,
			PersistentVolumeSource:        shownSource(super),
			PersistentVolumeReclaimPolicy: reclaimPolicy(super),
			StorageClassName:              own.StorageClassName,
			VolumeMode:                    own.VolumeMode,
			NodeAffinity:                  own.NodeAffinity,
			VolumeAttributesClassName:     own.VolumeAttributesClassName,
		},
		Status: corev1.PersistentVolumeStatus{
			Phase:   super.Status.Phase,
			Reason:  super.Status.Reason,
			Message: v.Tenant.Text(super.Status.Message, v.Namespace),
		},
	}
	// A binder in the tenant leaves deletion of the volume to the driver with
	// this name.
	if by := super.Annotations[provisionedBy]; by != "" && !strings.HasPrefix(by, "kubernetes.io/") {
		volume.Annotations = map[string]string{provisionedBy: by}
	}
	var bound bool
	if volume.Spec.ClaimRef, bound = tenantClaim(v, super.Spec.ClaimRef); !bound && volume.Status.Phase == corev1.VolumeBound {
		volume.Status.Phase = corev1.VolumeReleased // the tenant's claim was deleted before its copy
	}
	return volume
}

// tenantClaim returns a reference to the tenant's claim of a volume, and
// reports whether it exists. For a deleted claim, the UID matches no claim in
// the tenant, so that no other claim with its name gets the volume.
func tenantClaim(v kinds.View, super *corev1.ObjectReference) (ref *corev1.ObjectReference, bound bool) {
	ref = &corev1.ObjectReference{
		APIVersion: "v1", Kind: claimKind.Kind, Namespace: v.Namespace, Name: super.Name, UID: super.UID,
	}
	claim := v.Lookup(claimKind, client.ObjectKey{Namespace: super.Namespace, Name: super.Name}, super.UID)
	if claim == nil {
		return ref, false
	}
	ref.Namespace, ref.Name, ref.UID = claim.GetNamespace(), claim.GetName(), claim.GetUID()
	return ref, true
}

// topology returns the labels with the topology of a volume.
func topology(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, "topology.kubernetes.io/") })
	return out
}

// shownSource returns the source for tenants.
func shownSource(super *corev1.PersistentVolume) corev1.PersistentVolumeSource {
	shown := &corev1.CSIPersistentVolumeSource{Driver: otherDriver, VolumeHandle: super.Name}
	if csi := super.Spec.CSI; csi != nil {
		shown.Driver = csi.Driver
	}
	return corev1.PersistentVolumeSource{CSI: shown}
}

// reclaimPolicy returns the policy for tenants. With Recycle, which is
// deprecated, a binder in the tenant would try to clean the volume; Retain
// describes that the tenant keeps it.
func reclaimPolicy(super *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if super.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		return corev1.PersistentVolumeReclaimRetain
	}
	return super.Spec.PersistentVolumeReclaimPolicy
}

// mergeVolume merges the mutable fields of a volume, and keeps annotations of
// controllers in the tenant.
func mergeVolume(tenant, desired *corev1.PersistentVolume) {
	tenant.Labels = desired.Labels
	takeAnnotations(tenant, desired, []string{provisionedBy})
	tenant.Spec = desired.Spec
}
