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

// provisionedBy is the annotation that says which driver made a volume and is going to delete it.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// otherDriver is shown as the driver of volumes that no CSI driver serves.
const otherDriver = "super." + names.Domain

// PersistentVolume is shown to the tenant whose claim it is bound to, until it is gone: also when the claim is deleted, since
// what is in the volume then depends on its reclaim policy. The tenant may change it only if spec.policy allows that: a retained
// volume takes the platform's storage, and the platform may want to retain one that the tenant would delete.
//
// A volume has to have a source, which says where the super cluster keeps it and with which secrets. The tenant sees that of
// a CSI driver with the driver's name, and the volume's own name as the handle. Mount options, which can hold passwords, and the
// labels of the super cluster are not shown, except for where in the topology it is.
func PersistentVolume() kinds.Flow {
	return kinds.Up[*corev1.PersistentVolume]{
		Name:      "PersistentVolume",
		Object:    &corev1.PersistentVolume{},
		List:      &corev1.PersistentVolumeList{},
		Namespace: claimNamespace,
		Desired:   tenantVolume,
		Merge:     mergeVolume,
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
			if allowed && policy != reclaimPolicy(super) { // Recycle reads Retain
				super.Spec.PersistentVolumeReclaimPolicy = policy
			}
		},
	}
}

// claimNamespace is the namespace of the claim that a volume is or was bound to. A volume that only waits for a claim of some
// name has no UID in its reference yet, and is not anybody's.
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
	// A binder in the tenant leaves it to the driver of this name to delete the volume.
	if by := super.Annotations[provisionedBy]; by != "" && !strings.HasPrefix(by, "kubernetes.io/") {
		volume.Annotations = map[string]string{provisionedBy: by}
	}
	var bound bool
	if volume.Spec.ClaimRef, bound = tenantClaim(v, super.Spec.ClaimRef); !bound && volume.Status.Phase == corev1.VolumeBound {
		volume.Status.Phase = corev1.VolumeReleased // the tenant's claim is gone before its copy
	}
	return volume
}

// tenantClaim refers to the tenant's claim of a volume, and says whether there is one. The UID of a claim that is gone is nobody's
// in the tenant either, so that no other claim of its name takes the volume.
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

// topology are the labels that say where a volume is.
func topology(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, "topology.kubernetes.io/") })
	return out
}

// shownSource is the source that tenants see.
func shownSource(super *corev1.PersistentVolume) corev1.PersistentVolumeSource {
	shown := &corev1.CSIPersistentVolumeSource{Driver: otherDriver, VolumeHandle: super.Name}
	if csi := super.Spec.CSI; csi != nil {
		shown.Driver = csi.Driver
	}
	return corev1.PersistentVolumeSource{CSI: shown}
}

// reclaimPolicy is the policy that tenants see. Recycle, which is deprecated, would have a binder in the tenant try to clean the
// volume: it reads Retain, since the tenant keeps it.
func reclaimPolicy(super *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if super.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		return corev1.PersistentVolumeReclaimRetain
	}
	return super.Spec.PersistentVolumeReclaimPolicy
}

// mergeVolume takes what can be changed in a volume that exists, and leaves alone what controllers in the tenant note on it.
func mergeVolume(tenant, desired *corev1.PersistentVolume) {
	tenant.Labels = desired.Labels
	takeAnnotations(tenant, desired, []string{provisionedBy})
	tenant.Spec = desired.Spec
}
