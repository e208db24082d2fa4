package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources returns requests and limits.
func resources(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

func TestPodResize(t *testing.T) {
	app := func(r corev1.ResourceRequirements) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: r}}}
	}
	requests := func(list corev1.ResourceList) corev1.PodSpec { return app(resources(list, nil)) }
	of := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	tests := map[string]struct {
		generation          int64
		tenant, super, want corev1.PodSpec
	}{
		"a new pod keeps the super cluster's resources": {
			1, requests(of("cpu", "1")), requests(of("cpu", "100m")), requests(of("cpu", "100m")),
		},
		"where changes are not counted, nothing is known to have changed": {
			0, requests(of("cpu", "1")), requests(of("cpu", "100m")), requests(of("cpu", "100m")),
		},
		"requests and limits are changed": {
			2, app(resources(of("cpu", "1", "memory", "1Gi"), of("cpu", "2", "memory", "2Gi"))),
			app(resources(of("cpu", "100m", "memory", "1Mi"), of("cpu", "200m", "memory", "2Mi"))),
			app(resources(of("cpu", "1", "memory", "1Gi"), of("cpu", "2", "memory", "2Gi"))),
		},
		"new resources are added, also to an empty list": {
			2, app(resources(of("cpu", "1"), of("cpu", "2"))), app(resources(nil, of("memory", "2Gi"))),
			app(resources(of("cpu", "1"), of("cpu", "2", "memory", "2Gi"))),
		},
		"resources that the tenant does not declare stay": {
			2, requests(of("cpu", "1")), app(resources(of("cpu", "1", "memory", "1Gi"), of("cpu", "4"))),
			app(resources(of("cpu", "1", "memory", "1Gi"), of("cpu", "4"))),
		},
		"other resources stay": {
			2, requests(of("cpu", "1", "example.com/gpu", "2", "ephemeral-storage", "2Gi")),
			requests(of("cpu", "1", "example.com/gpu", "1", "ephemeral-storage", "1Gi")),
			requests(of("cpu", "1", "example.com/gpu", "1", "ephemeral-storage", "1Gi")),
		},
		"the same amount written otherwise is the same": {
			2, requests(of("cpu", "1000m")), requests(of("cpu", "1")), requests(of("cpu", "1")),
		},
		"containers are found by name, and those of the super cluster's stay": {
			2,
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "sidecar", Resources: resources(of("cpu", "2"), nil)}},
				Containers:     []corev1.Container{{Name: "app", Resources: resources(of("cpu", "3"), nil)}},
			},
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "injected"}, {Name: "sidecar", Resources: resources(of("cpu", "1"), nil)}},
				Containers:     []corev1.Container{{Name: "proxy", Resources: resources(of("cpu", "1"), nil)}, {Name: "app"}},
			},
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "injected"}, {Name: "sidecar", Resources: resources(of("cpu", "2"), nil)}},
				Containers:     []corev1.Container{{Name: "proxy", Resources: resources(of("cpu", "1"), nil)}, {Name: "app", Resources: resources(of("cpu", "3"), nil)}},
			},
		},
		"of the pod as a whole": {
			2, corev1.PodSpec{Resources: new(resources(of("cpu", "2"), of("memory", "2Gi")))},
			corev1.PodSpec{Resources: new(resources(of("cpu", "1"), of("memory", "1Gi", "hugepages-2Mi", "2Mi")))},
			corev1.PodSpec{Resources: new(resources(of("cpu", "2"), of("memory", "2Gi", "hugepages-2Mi", "2Mi")))},
		},
		"of the pod as a whole, for the first time": {
			2, corev1.PodSpec{Resources: new(resources(of("cpu", "2"), nil))},
			corev1.PodSpec{}, corev1.PodSpec{Resources: new(resources(of("cpu", "2"), nil))},
		},
		"the super cluster's of the pod as a whole stay": {
			2, corev1.PodSpec{}, corev1.PodSpec{Resources: new(resources(of("cpu", "2"), nil))},
			corev1.PodSpec{Resources: new(resources(of("cpu", "2"), nil))},
		},
		"empty resources at pod level are ignored": {
			2, corev1.PodSpec{Resources: &corev1.ResourceRequirements{}}, corev1.PodSpec{}, corev1.PodSpec{},
		},
	}
	sub := subresource(t, "resize")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant, super := &corev1.Pod{ObjectMeta: meta("web"), Spec: tt.tenant}, &corev1.Pod{ObjectMeta: superMeta("web"), Spec: tt.super}
			tenant.Generation = tt.generation
			want := &corev1.Pod{ObjectMeta: superMeta("web"), Spec: tt.want}
			sub.Merge(view, super, tenant)
			if diff := cmp.Diff(want, super, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the copy (-want +got):\n%s", diff)
			}
		})
	}
}
