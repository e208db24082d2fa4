package resources

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// VolumeAttributesClass is shown to the tenants that may ask for it. Its parameters are what one chooses by, such as a
// throughput, and name no secret.
func VolumeAttributesClass() kinds.Flow {
	return class("VolumeAttributesClass", &storagev1.VolumeAttributesClass{}, &storagev1.VolumeAttributesClassList{},
		func(to, from *storagev1.VolumeAttributesClass) {
			own := from.DeepCopy()
			to.DriverName, to.Parameters = own.DriverName, own.Parameters
		},
		func(a, b *storagev1.VolumeAttributesClass) bool {
			return a.DriverName != b.DriverName || !semanticEqual(a.Parameters, b.Parameters)
		},
	)
}
