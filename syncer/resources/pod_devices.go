package resources

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// admitDeviceResources rejects a device class that the super cluster does not
// offer in the resources of a container, by which every class can be requested
// without a claim.
func admitDeviceResources(v kinds.View, spec *corev1.PodSpec) error {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, resource := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			class, isDevice := strings.CutPrefix(string(resource), resourcev1.ResourceDeviceClassPrefix)
			if isDevice && !v.Offers("DeviceClass", class) {
				return notOffered("a device class in the limits of container "+c.Name, "deviceclasses", class)
			}
		}
	}
	return nil
}
