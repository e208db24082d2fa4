package resources

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// TestDeviceClass checks that the configuration of drivers is not synced up.
func TestDeviceClass(t *testing.T) {
	selector := resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: "text-6"}}
	want := &resourcev1.DeviceClass{
		ObjectMeta: classMeta(nil),
		Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{selector, selector}, ExtendedResourceName: new("text-3"),
		},
	}
	testClass(t, DeviceClass(), superClass(&resourcev1.DeviceClass{}, nil), want)
}
