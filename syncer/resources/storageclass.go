package resources

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// StorageClass is synced up to the tenants that may claim volumes of it: the
// reclaim policy, the binding mode, whether volumes can be expanded, and their
// topology. Parameters and mount options are not synced up, since they can name
// secrets, and tenants do not provision volumes.
func StorageClass() kinds.Flow {
	return class("StorageClass", &storagev1.StorageClass{}, &storagev1.StorageClassList{},
		func(to, from *storagev1.StorageClass) {
			own := from.DeepCopy()
			to.Provisioner, to.ReclaimPolicy, to.VolumeBindingMode = own.Provisioner, own.ReclaimPolicy, own.VolumeBindingMode
			to.AllowVolumeExpansion, to.AllowedTopologies = own.AllowVolumeExpansion, own.AllowedTopologies
			to.Parameters, to.MountOptions = nil, nil
		},
		func(a, b *storagev1.StorageClass) bool {
			return a.Provisioner != b.Provisioner || !semanticEqual(a.Parameters, b.Parameters) ||
				!semanticEqual(a.ReclaimPolicy, b.ReclaimPolicy) || !semanticEqual(a.VolumeBindingMode, b.VolumeBindingMode)
		},
		"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class",
	)
}
