package resources

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

func TestVolumeAttributesClass(t *testing.T) {
	super := superClass(&storagev1.VolumeAttributesClass{}, nil)
	super.Parameters = map[string]string{"iops": "3000"}
	want := &storagev1.VolumeAttributesClass{
		ObjectMeta: classMeta(nil),
		DriverName: "text-1",
		Parameters: map[string]string{"iops": "3000"},
	}
	testClass(t, VolumeAttributesClass(), super, want,
		func(c *storagev1.VolumeAttributesClass) { c.DriverName = "other" },
		func(c *storagev1.VolumeAttributesClass) { c.Parameters["iops"] = "4000" },
	)
}
