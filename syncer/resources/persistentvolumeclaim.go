package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// claimKind is the kind of claims, by which other kinds find them.
var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// PersistentVolumeClaim flows down, to be bound in the super cluster to a volume of one of the classes that it offers. Which
// volume that is comes back, so that the claim is bound in tenants without a controller that binds, and the same in those with
// one. A volume that the claim names goes down when the copy is made: a copy that is lost and made again must not get an empty
// volume in the place of the one that holds the data. It gives no choice that the class does not.
func PersistentVolumeClaim() kinds.Flow {
	return kinds.Down[*corev1.PersistentVolumeClaim]{
		Name:       claimKind.Kind,
		Object:     &corev1.PersistentVolumeClaim{},
		List:       &corev1.PersistentVolumeClaimList{},
		Admit:      admitVolumeClaim,
		Desired:    desiredVolumeClaim,
		Merge:      mergeVolumeClaim,
		References: volumeClaimReferences,
		Back:       boundVolume,
		Status:     volumeClaimStatus,
		Same: func(a, b *corev1.PersistentVolumeClaim) bool {
			return semanticEqual(a.Status, b.Status)
		},
	}
}

// admitVolumeClaim refuses a claim for volumes of a class that the super cluster does not offer. One that has a copy keeps its class,
// as it would if the class were deleted.
func admitVolumeClaim(v kinds.View, tenant *corev1.PersistentVolumeClaim) error {
	if class := ptr.Deref(volumeClaimClass(tenant), ""); !v.Offers("StorageClass", class) {
		return notOffered("spec.storageClassName", "storageclasses", class)
	}
	return nil
}

// volumeClaimClass is the storage class of a claim. The annotation is older than the field, and where both are set it counts.
func volumeClaimClass(claim *corev1.PersistentVolumeClaim) *string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return &class
	}
	return claim.Spec.StorageClassName
}

func desiredVolumeClaim(v kinds.View, tenant *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	spec := tenant.DeepCopy().Spec
	if class := ptr.Deref(spec.VolumeAttributesClassName, ""); class != "" && !v.Offers("VolumeAttributesClass", class) {
		return nil, notOffered("spec.volumeAttributesClassName", "volumeattributesclasses", class)
	}
	if class := volumeClaimClass(tenant); class != nil {
		spec.StorageClassName = new(*class)
	}
	if ref := spec.DataSourceRef; ref != nil && ref.Namespace != nil {
		ref.Namespace = new(v.Tenant.SuperNamespace(*ref.Namespace))
	}
	return &corev1.PersistentVolumeClaim{Spec: spec}, nil
}

// volumeClaimReferences is what a volume is filled with: a claim, a snapshot, or an object of a populator's. Both fields name the same,
// unless one of them is not known to the tenant's apiserver.
func volumeClaimReferences(claim *corev1.PersistentVolumeClaim) []kinds.Reference {
	var refs references
	if from := claim.Spec.DataSource; from != nil {
		refs.add(kindName(from.APIGroup, from.Kind), from.Name)
	}
	if from := claim.Spec.DataSourceRef; from != nil {
		refs.addIn(ptr.Deref(from.Namespace, ""), kindName(from.APIGroup, from.Kind), from.Name)
	}
	return refs
}

// mergeVolumeClaim takes what can be changed in a claim that exists (PersistentVolumeClaim update validation).
func mergeVolumeClaim(super, desired *corev1.PersistentVolumeClaim) {
	super.Spec.Resources.Requests = desired.Spec.Resources.Requests
	super.Spec.VolumeAttributesClassName = desired.Spec.VolumeAttributesClassName
}

// boundVolume names the volume that the copy is bound to. A claim can be bound once.
func boundVolume(_ kinds.View, tenant, super *corev1.PersistentVolumeClaim) {
	if tenant.Spec.VolumeName == "" {
		tenant.Spec.VolumeName = super.Spec.VolumeName
	}
}

// volumeClaimStatus brings up the status, but for that of a copy that waits for a volume while the tenant's claim has one: then this
// is not the claim's beginning, and a controller that binds in the tenant knows better what became of it.
func volumeClaimStatus(v kinds.View, tenant, super *corev1.PersistentVolumeClaim) {
	if super.Status.Phase == corev1.ClaimPending && tenant.Spec.VolumeName != "" {
		return
	}
	tenant.Status = *super.Status.DeepCopy()
	for i := range tenant.Status.Conditions {
		c := &tenant.Status.Conditions[i]
		c.Message = v.Tenant.Text(c.Message, v.Namespace)
	}
}
