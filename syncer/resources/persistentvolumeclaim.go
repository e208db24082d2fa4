package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// claimKind is the kind of claims, for lookups of other kinds.
var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// PersistentVolumeClaim is synced down, to be bound in the super cluster to a
// volume of an offered class. The name of the volume is synced up, so that the
// claim is bound in tenants without a binding controller, and to the same
// volume in those with one. The copy is created with the volume that the claim
// names: if it has to be recreated, it must get the volume with the data, and
// not an empty one. The tenant cannot choose a volume that the class does not
// allow.
func PersistentVolumeClaim() kinds.Flow {
	return kinds.Down[*corev1.PersistentVolumeClaim]{
		Name:       claimKind.Kind,
		Object:     &corev1.PersistentVolumeClaim{},
		List:       &corev1.PersistentVolumeClaimList{},
		Summary:    "claims down; their volumes up",
		Optional:   true,
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

// admitVolumeClaim rejects a claim whose class is not offered. An existing copy
// keeps its class, as if the class were deleted.
func admitVolumeClaim(v kinds.View, tenant *corev1.PersistentVolumeClaim) error {
	if class := ptr.Deref(volumeClaimClass(tenant), ""); !v.Offers("StorageClass", class) {
		return notOffered("spec.storageClassName", "storageclasses", class)
	}
	return nil
}

// volumeClaimClass returns the storage class of a claim. The annotation is
// older than the field, and takes precedence.
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

// volumeClaimReferences returns the source of a volume's content: a claim, a
// snapshot, or an object of a populator. Both fields name the same object,
// unless the tenant's apiserver does not know one of them.
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

// mergeVolumeClaim merges the mutable fields of a claim (PersistentVolumeClaim
// update validation).
func mergeVolumeClaim(super, desired *corev1.PersistentVolumeClaim) {
	super.Spec.Resources.Requests = desired.Spec.Resources.Requests
	super.Spec.VolumeAttributesClassName = desired.Spec.VolumeAttributesClassName
}

// boundVolume sets the volume that the copy is bound to. A claim can only be
// bound once.
func boundVolume(_ kinds.View, tenant, super *corev1.PersistentVolumeClaim) {
	if tenant.Spec.VolumeName == "" {
		tenant.Spec.VolumeName = super.Spec.VolumeName
	}
}

// volumeClaimStatus copies the status, except that of a pending copy of a claim
// that already has a volume: the copy was recreated, and a binding controller
// in the tenant knows the current state.
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
