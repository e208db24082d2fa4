package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/virtualvolume"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// PersistentVolume is synced up to the tenant whose claim it is bound to, until
// it is deleted: also after the deletion of the claim, since its reclaim policy
// then decides about the data. The tenant may only change the policy if
// spec.policy allows it: a retained volume takes the platform's storage, and
// the platform may want to retain one that the tenant would delete.
func PersistentVolume() kinds.Flow {
	return kinds.Up[*corev1.PersistentVolume]{
		Name:          "PersistentVolume",
		Object:        &corev1.PersistentVolume{},
		List:          &corev1.PersistentVolumeList{},
		Summary:       "claims down; their volumes up",
		ClusterScoped: true,
		Optional:      true,
		Namespace:     virtualvolume.ClaimNamespace,
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
			if allowed && policy != virtualvolume.ReclaimPolicy(super) { // Recycle is shown as Retain
				super.Spec.PersistentVolumeReclaimPolicy = policy
			}
		},
	}
}

func tenantVolume(v kinds.View, super *corev1.PersistentVolume) *corev1.PersistentVolume {
	volume := virtualvolume.Of(super)
	volume.Status.Message = v.Tenant.Text(volume.Status.Message, v.Namespace)
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

// mergeVolume merges the mutable fields of a volume, and keeps annotations of
// controllers in the tenant.
func mergeVolume(tenant, desired *corev1.PersistentVolume) {
	tenant.Labels = desired.Labels
	takeAnnotations(tenant, desired, []string{virtualvolume.ProvisionedBy})
	tenant.Spec = desired.Spec
}
