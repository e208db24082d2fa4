package resources

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// VolumeAttributesClass is synced up to the tenants that may use it. Its
// parameters are what users choose it for, such as a throughput, and contain no
// secrets.
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
