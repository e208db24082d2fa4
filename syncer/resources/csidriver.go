package resources

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// CSIDriver is synced up to the tenants whose pods may use it: its label
// determines for the tenant's admission which pods may have inline volumes of
// it, and its spec how it treats them. The tokens that it requests of the super
// cluster are not synced up.
func CSIDriver() kinds.Flow {
	return class("CSIDriver", &storagev1.CSIDriver{}, &storagev1.CSIDriverList{},
		func(to, from *storagev1.CSIDriver) {
			own := from.Spec.DeepCopy()
			to.Spec = storagev1.CSIDriverSpec{
				AttachRequired:       own.AttachRequired,
				PodInfoOnMount:       own.PodInfoOnMount,
				VolumeLifecycleModes: own.VolumeLifecycleModes,
				StorageCapacity:      own.StorageCapacity,
				FSGroupPolicy:        own.FSGroupPolicy,
				RequiresRepublish:    own.RequiresRepublish,
				SELinuxMount:         own.SELinuxMount,
			}
		},
		func(a, b *storagev1.CSIDriver) bool {
			return !semanticEqual(a.Spec.AttachRequired, b.Spec.AttachRequired) ||
				!semanticEqual(a.Spec.VolumeLifecycleModes, b.Spec.VolumeLifecycleModes)
		},
	)
}
