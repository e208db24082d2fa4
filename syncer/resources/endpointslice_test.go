package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// target returns a reference to a pod in a namespace, as its apiserver knows
// it.
func target(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web", UID: "pod-uid", ResourceVersion: "7"}
}

// superTarget returns the reference to the copy.
func superTarget(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web"}
}

func TestEndpointSliceGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*discoveryv1.EndpointSlice]](t, EndpointSlice())
	slice := func(ref *corev1.ObjectReference) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{
					Addresses: []string{"10.1.0.1"}, Hostname: new("web"), NodeName: new("node-1"), Zone: new("a"),
					Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: ref,
				},
				{Addresses: []string{"192.0.2.1"}},
			},
			Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}},
		}
	}
	for namespace, super := range map[string]string{
		"default": superDefault, "kube-system": "team-71a1c3-blue-kube-system", "": "", superDefault: "team-71a1c3-blue-" + superDefault,
	} {
		tenant := slice(target(namespace))
		tenant.ObjectMeta = meta("web")
		got, err := k.Desired(view, tenant)
		if diff := cmp.Diff(slice(superTarget(super)), got); err != nil || diff != "" {
			t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
		}
	}
}

func TestEndpointSliceMerge(t *testing.T) {
	k := kindOf[kinds.Down[*discoveryv1.EndpointSlice]](t, EndpointSlice())
	addresses := func(meta metav1.ObjectMeta, kind discoveryv1.AddressType, all ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: kind, Ports: []discoveryv1.EndpointPort{{Name: new(all[0])}}}
		for _, address := range all {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return s
	}
	super := addresses(superMeta("web"), discoveryv1.AddressTypeIPv4, "10.1.0.1", "10.1.0.2")
	desired := addresses(metav1.ObjectMeta{}, discoveryv1.AddressTypeIPv4, "10.1.0.3")
	if k.Replace(super, desired) {
		t.Error("other addresses need another slice")
	}
	if !k.Replace(super, addresses(metav1.ObjectMeta{}, discoveryv1.AddressTypeIPv6, "fd00::1")) {
		t.Error("the family of a slice changes in place")
	}
	k.Merge(super, desired)
	if diff := cmp.Diff(addresses(superMeta("web"), discoveryv1.AddressTypeIPv4, "10.1.0.3"), super); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

func TestEndpointSlicesOfControllersStay(t *testing.T) {
	k := kindOf[kinds.Down[*discoveryv1.EndpointSlice]](t, EndpointSlice())
	tests := map[string]struct {
		labels labels.Set
		want   bool
	}{
		"written by hand":          {nil, true},
		"for a service":            {labels.Set{"kubernetes.io/service-name": "web"}, true},
		"the apiserver's":          {labels.Set{"kubernetes.io/service-name": "kubernetes"}, true},
		"by another controller":    {labels.Set{"endpointslice.kubernetes.io/managed-by": "mesh.example.com"}, true},
		"made of a service's pods": {labels.Set{"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}, false},
		"made of Endpoints": {
			labels.Set{"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"}, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Selector.Matches(tt.labels); got != tt.want {
				t.Errorf("is synced down: %t, want %t", got, tt.want)
			}
		})
	}
}
