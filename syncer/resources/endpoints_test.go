package resources

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// subsets returns endpoints with a ready and a not ready address, both of a
// pod.
func subsets(ref *corev1.ObjectReference) []corev1.EndpointSubset { //nolint:staticcheck // what Endpoints are made of
	return []corev1.EndpointSubset{{ //nolint:staticcheck // what Endpoints are made of
		Addresses:         []corev1.EndpointAddress{{IP: "10.1.0.1", NodeName: new("node-1"), TargetRef: ref}},
		NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.1.0.2", TargetRef: ref}, {IP: "192.0.2.1"}},
		Ports:             []corev1.EndpointPort{{Name: "http", Port: 80}},
	}}
}

func TestEndpointsGoDown(t *testing.T) {
	k := kindOf[kinds.Down[*endpoints]](t, Endpoints())
	got, err := k.Desired(view, &endpoints{ObjectMeta: meta("web"), Subsets: subsets(target("shop"))})
	want := &endpoints{Subsets: subsets(superTarget("team-71a1c3-blue-shop"))}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
}

// TestEndpointsOfAServiceThatSelects checks that they are rejected: the super
// cluster's controller would overwrite them for ever.
func TestEndpointsOfAServiceThatSelects(t *testing.T) {
	k := kindOf[kinds.Down[*endpoints]](t, Endpoints())
	tests := map[string]struct {
		service client.Object
		want    error
	}{
		"without a service":               {nil, nil},
		"of a service without a selector": {service(corev1.ServiceSpec{}), nil},
		"of a service that selects":       {service(corev1.ServiceSpec{Selector: selector}), errSelects},
		"an object of another kind":       {&corev1.Pod{}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := view
			v.Lookup = func(kind schema.GroupKind, key client.ObjectKey, uid types.UID) client.Object {
				if kind.String() != "Service" || key != (client.ObjectKey{Namespace: superDefault, Name: "web"}) || uid != "" {
					t.Errorf("asked for %s %s with UID %q", kind, key, uid)
				}
				return tt.service
			}
			if _, err := k.Desired(v, &endpoints{ObjectMeta: meta("web"), Subsets: subsets(nil)}); !errors.Is(err, tt.want) {
				t.Errorf("the error is %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEndpointsOfControllersStay(t *testing.T) {
	k := kindOf[kinds.Down[*endpoints]](t, Endpoints())
	tests := map[string]struct {
		meta    metav1.ObjectMeta
		subsets int
		want    bool
	}{
		"written by hand":                  {metav1.ObjectMeta{Namespace: "default", Name: "web"}, 1, true},
		"without an address":               {metav1.ObjectMeta{Namespace: "default", Name: "web"}, 0, false},
		"the apiserver's":                  {metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}, 1, true},
		"made by a controller":             {metav1.ObjectMeta{Labels: labels.Set{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}, 1, false},
		"made by a controller before 1.33": {metav1.ObjectMeta{Annotations: labels.Set{"endpoints.kubernetes.io/last-change-trigger-time": "x"}}, 1, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := &endpoints{ObjectMeta: tt.meta, Subsets: subsets(nil)[:tt.subsets]}
			if got := k.Selector.Matches(labels.Set(tt.meta.Labels)) && !k.Skip(view, tenant); got != tt.want {
				t.Errorf("is synced down: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestEndpointsTakeOver checks that the marks of the super cluster's controller
// are removed.
func TestEndpointsTakeOver(t *testing.T) {
	k := kindOf[kinds.Down[*endpoints]](t, Endpoints())
	super := &endpoints{ObjectMeta: superMeta("web"), Subsets: subsets(target("elsewhere"))}
	super.Labels = map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller", "kept": "yes"}
	super.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "x", "kept": "yes"}
	if !k.Adopt(super) {
		t.Error("it is not taken over")
	}
	k.Merge(super, &endpoints{Subsets: subsets(nil)})
	want := &endpoints{ObjectMeta: superMeta("web"), Subsets: subsets(nil)}
	want.Labels, want.Annotations = map[string]string{"kept": "yes"}, map[string]string{"kept": "yes"}
	if diff := cmp.Diff(want, super); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	if k.Adopt(super) {
		t.Error("an object of another owner is taken over")
	}
	if !k.Selector.Matches(labels.Set(super.Labels)) {
		t.Error("an object that was taken over is not selected")
	}
}
