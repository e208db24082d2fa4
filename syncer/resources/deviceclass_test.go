package resources

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// TestDeviceClass: a tenant does not see what the drivers are told.
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
