package resources

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TestSelectInNetwork: a Service selects no pod of another network.
func TestSelectInNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant, translated, want map[string]string
		refused                  bool
	}{
		"no selector": {nil, nil, nil, false},
		"an application": {
			map[string]string{"app": "web"}, map[string]string{"app": "web"}, map[string]string{"app": "web", networkv1.Label: "lab"}, false,
		},
		"its network": {
			map[string]string{networkv1.Label: "lab"}, map[string]string{networkv1.Label: "lab"}, map[string]string{networkv1.Label: "lab"}, false,
		},
		"its network, by a label that stays in the tenant": {
			map[string]string{networkv1.Label: "lab"}, map[string]string{names.Label(networkv1.Label): "lab"}, map[string]string{networkv1.Label: "lab"}, false,
		},
		"another network": {
			map[string]string{"app": "web", networkv1.Label: "office"}, map[string]string{"app": "web", networkv1.Label: "office"}, nil, true,
		},
		"another network, by a label that stays in the tenant": {
			map[string]string{networkv1.Label: "office"}, map[string]string{names.Label(networkv1.Label): "office"}, nil, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(selector map[string]string) *corev1.Service {
				return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Selector: selector}}
			}
			desired := of(tc.translated)
			err := selectInNetwork(of(tc.tenant), desired, "lab")
			if refused := err != nil; refused != tc.refused {
				t.Fatalf("refused is %t (%v), want %t", refused, err, tc.refused)
			}
			if !tc.refused && !maps.Equal(desired.Spec.Selector, tc.want) {
				t.Errorf("it selects %v, want %v", desired.Spec.Selector, tc.want)
			}
		})
	}
}

// TestServicesOfThePlatform: a Service that the platform has made for a network
// selects the pods of the tenant's DNS, which are in another one. The mark of the
// platform makes no other Service one of these.
func TestServicesOfThePlatform(t *testing.T) {
	selector := map[string]string{"k8s-app": "kube-dns"}
	for name, tc := range map[string]struct {
		service, mark string
		platforms     bool
	}{
		"the DNS of the network":       {"kube-dns-lab", names.DNSService, true},
		"the apiserver of the network": {"kubernetes-lab", names.APIService, true},
		"of another network":           {"kube-dns-dev", names.DNSService, false},
		"another mark":                 {"web-lab", "web", false},
		"no mark":                      {"kube-dns-lab", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: tc.service, Annotations: map[string]string{names.NetworkService: tc.mark}}}
			tenant.Spec.Selector = selector
			desired := &corev1.Service{Spec: corev1.ServiceSpec{Selector: maps.Clone(selector)}}
			if err := selectInNetwork(tenant, desired, "lab"); err != nil {
				t.Fatal(err)
			}
			_, marked := desired.Labels[names.NetworkService]
			if maps.Equal(desired.Spec.Selector, selector) != tc.platforms || marked != tc.platforms {
				t.Errorf("it selects %v, and has the labels %v", desired.Spec.Selector, desired.Labels)
			}
		})
	}
}

// TestKeptEndpoints: a Service that the platform has made for a network has no
// endpoints of the tenant's own.
func TestKeptEndpoints(t *testing.T) {
	slices := kindOf[kinds.Down[*discoveryv1.EndpointSlice]](t, EndpointSlice())
	byHand := kindOf[kinds.Down[*endpoints]](t, Endpoints())
	of := func(mark map[string]string) kinds.View {
		v := view
		v.Lookup = func(schema.GroupKind, client.ObjectKey, types.UID) client.Object {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: mark}}
		}
		return v
	}
	mark := map[string]string{names.NetworkService: names.APIService}
	for name, tc := range map[string]struct {
		view  kinds.View
		slice metav1.ObjectMeta
		kept  bool
	}{
		"the platform's":              {of(mark), metav1.ObjectMeta{Name: "kubernetes-lab", Annotations: mark}, false},
		"of a Service of the tenant":  {of(nil), metav1.ObjectMeta{Name: "web"}, false},
		"of no Service":               {view, metav1.ObjectMeta{Name: "web"}, false},
		"the tenant's":                {of(mark), metav1.ObjectMeta{Name: "web"}, true},
		"the tenant's, with the name": {of(mark), metav1.ObjectMeta{Name: "kubernetes-lab"}, true},
		"the tenant's, with the mark": {of(mark), metav1.ObjectMeta{Name: "web", Annotations: mark}, true},
	} {
		t.Run(name, func(t *testing.T) {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: tc.slice, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}}}
			slice.Labels = map[string]string{discoveryv1.LabelServiceName: "kubernetes-lab"}
			if kept := slices.Admit(tc.view, slice) != nil; kept != tc.kept {
				t.Errorf("it may have no copy: %t, want %t", kept, tc.kept)
			}
			copied, err := slices.Desired(tc.view, slice)
			if kept := len(copied.Endpoints) == 0; err != nil || kept != tc.kept || (slices.Omitted(tc.view, slice) != nil) != tc.kept {
				t.Errorf("the copy has no endpoints: %t (%v), want %t", kept, err, tc.kept)
			}
		})
	}
	old := &endpoints{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes-lab"}, Subsets: []endpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.1.0.1"}}}}}
	if byHand.Admit(of(mark), old) == nil || byHand.Admit(of(nil), old) != nil {
		t.Error("Endpoints are not treated as an EndpointSlice")
	}
}
