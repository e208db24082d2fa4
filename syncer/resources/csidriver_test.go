package resources

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// TestCSIDriver checks that token requests are not synced up.
func TestCSIDriver(t *testing.T) {
	want := &storagev1.CSIDriver{
		ObjectMeta: classMeta(nil),
		Spec: storagev1.CSIDriverSpec{
			AttachRequired:       new(true),
			PodInfoOnMount:       new(true),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"text-3", "text-3"},
			StorageCapacity:      new(true),
			FSGroupPolicy:        new(storagev1.FSGroupPolicy("text-3")),
			RequiresRepublish:    new(true),
			SELinuxMount:         new(true),
		},
	}
	testClass(t, CSIDriver(), superClass(&storagev1.CSIDriver{}, nil), want,
		func(d *storagev1.CSIDriver) { d.Spec.AttachRequired = new(false) },
		func(d *storagev1.CSIDriver) { d.Spec.VolumeLifecycleModes = nil },
	)
}
