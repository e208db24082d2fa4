package resources

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// openVolumeTypes are the sources that all tenants' pods may mount: they
// contain data of the pod or of the tenant. All others, including those of
// later Kubernetes releases, have to be allowed by the policy.
var openVolumeTypes = []string{
	"configMap", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
}

// admitVolumes rejects volumes of types that the policy does not allow.
func admitVolumes(v kinds.View, spec *corev1.PodSpec) error {
	for i := range spec.Volumes {
		source, path := &spec.Volumes[i].VolumeSource, specPath.Child("volumes").Index(i)
		types := volumeTypes(source)
		if len(types) == 0 {
			// An apiserver sets a source for every volume, so this one is of a
			// release that the syncer does not know.
			return field.Forbidden(path, "the type of this volume is unknown")
		}
		for _, volumeType := range types {
			if why := admitVolume(v, source, volumeType, path); why != nil {
				return why
			}
		}
	}
	return nil
}

func admitVolume(v kinds.View, source *corev1.VolumeSource, volumeType string, path *field.Path) error {
	policy := v.Tenant.Policy
	switch {
	case slices.Contains(openVolumeTypes, volumeType),
		slices.Contains(policy.AllowVolumeTypes, tenancyv1alpha1.VolumeType(volumeType)):
		return nil
	case source.HostPath != nil:
		if policy.AllowHostPath {
			return nil
		}
		return field.Forbidden(path.Child(volumeType), "pods may not mount directories of their node")
	case source.CSI != nil:
		if v.Offers("CSIDriver", source.CSI.Driver) {
			return nil
		}
		return notOffered(path.Child(volumeType, "driver").String(), "csidrivers", source.CSI.Driver)
	}
	return field.Forbidden(path.Child(volumeType), "pods may not mount volumes of this type; use a PersistentVolumeClaim")
}

// volumeTypes returns the names of a volume's sources: one, for a pod that an
// apiserver has validated.
func volumeTypes(source *corev1.VolumeSource) []string {
	var types []string
	fields := reflect.ValueOf(source).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsZero() {
			types = append(types, jsonName(fields.Type().Field(i)))
		}
	}
	return types
}

// jsonName returns the name of a field in the API.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
