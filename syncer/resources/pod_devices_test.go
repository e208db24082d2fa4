package resources

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestDevicesAsResources(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	limits := func(names ...corev1.ResourceName) corev1.Container {
		c := corev1.Container{Name: "app", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}
		for _, name := range names {
			c.Resources.Limits[name] = resource.MustParse("1")
		}
		return c
	}
	tests := map[string]struct {
		containers, init []corev1.Container
		refused          string
	}{
		"none":                           {[]corev1.Container{limits("cpu", "example.com/gpu")}, nil, ""},
		"of a class that is offered":     {[]corev1.Container{limits("deviceclass.resource.kubernetes.io/fast")}, nil, ""},
		"of a class that is not":         {[]corev1.Container{limits("cpu", "deviceclass.resource.kubernetes.io/secret")}, nil, `"secret"`},
		"of one, by an init container":   {nil, []corev1.Container{limits("deviceclass.resource.kubernetes.io/secret")}, "container app"},
		"of a class by another's prefix": {[]corev1.Container{limits("example.com/deviceclass.resource.kubernetes.io")}, nil, ""},
	}
	v := offering("DeviceClass", "fast")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := tenantPod(func(p *corev1.Pod) { p.Spec.Containers, p.Spec.InitContainers = tt.containers, tt.init })
			switch err := k.Admit(v, pod); {
			case tt.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("the error is %v, which does not name %s", err, tt.refused)
			}
		})
	}
}
