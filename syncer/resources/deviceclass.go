package resources

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// DeviceClass is synced up to the tenants whose pods may claim its devices: the
// selectors of the devices, and the extended resource name by which a container
// can request them. The configuration of drivers stays in the super cluster.
func DeviceClass() kinds.Flow {
	return class("DeviceClass", &resourcev1.DeviceClass{}, &resourcev1.DeviceClassList{},
		func(to, from *resourcev1.DeviceClass) {
			own := from.Spec.DeepCopy()
			to.Spec = resourcev1.DeviceClassSpec{Selectors: own.Selectors, ExtendedResourceName: own.ExtendedResourceName}
		},
		nil,
	)
}
