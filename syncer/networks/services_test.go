package networks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// inTenant returns what a tenant has, in which the apiserver and the DNS have
// Services.
func inTenant(objects ...client.Object) *foundServices {
	api := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
	api.Spec = corev1.ServiceSpec{ClusterIP: "10.104.16.1", Ports: []corev1.ServicePort{
		{Name: "https", Port: 443, TargetPort: intstr.FromInt32(6443), NodePort: 30443},
	}}
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"}}
	dns.Spec = corev1.ServiceSpec{ClusterIP: "10.104.16.10", Selector: map[string]string{"k8s-app": "kube-dns"}, Ports: []corev1.ServicePort{{Port: 53}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
	slice.AddressType, slice.Endpoints = discoveryv1.AddressTypeIPv4, []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}}}
	found := &foundServices{services: map[client.ObjectKey]*corev1.Service{}, slices: map[client.ObjectKey]*discoveryv1.EndpointSlice{}}
	for _, obj := range append([]client.Object{api, dns, slice}, objects...) {
		switch o := obj.(type) {
		case *corev1.Service:
			found.services[client.ObjectKeyFromObject(o)] = o
		case *discoveryv1.EndpointSlice:
			found.slices[client.ObjectKeyFromObject(o)] = o
		}
	}
	return found
}

func TestDesiredServices(t *testing.T) {
	found := inTenant()
	api, dns := found.desiredService(wellKnown[0], "lab"), found.desiredService(wellKnown[1], "lab")
	want := []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(6443)}}
	if diff := cmp.Diff(want, api.Spec.Ports); diff != "" || api.Name != "kubernetes-lab" || api.Spec.Selector != nil || api.Spec.ClusterIP != "" {
		t.Errorf("that of the apiserver is %v (-want +got):\n%s", api, diff)
	}
	if dns.Name != "kube-dns-lab" || dns.Spec.Selector["k8s-app"] != "kube-dns" || dns.Labels[networkv1.Label] != "lab" {
		t.Errorf("that of the DNS is %v", dns)
	}
	slice := found.desiredSlice(wellKnown[0], "lab")
	if slice.Labels[discoveryv1.LabelServiceName] != "kubernetes-lab" || slice.Endpoints[0].Addresses[0] != "192.0.2.7" {
		t.Errorf("the endpoints are %v", slice)
	}
	for name, change := range map[string]func(*corev1.Service){
		"without a selector": func(s *corev1.Service) { s.Spec.Selector = nil },
		"a name outside":     func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
		"being deleted":      func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) },
		"without ports":      func(s *corev1.Service) { s.Spec.Ports = nil },
	} {
		found := inTenant()
		change(found.services[client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}])
		if got := found.desiredService(wellKnown[1], "lab"); got != nil {
			t.Errorf("a DNS Service %s has one in the network: %v", name, got)
		}
	}
}

// TestServicesThatANetworkCannotHave: names that are too long or taken are in the
// condition, and what the tenant has stays as it is.
func TestServicesThatANetworkCannotHave(t *testing.T) {
	own := metav1.ObjectMeta{Namespace: "default", Name: "kubernetes-lab"}
	for name, tc := range map[string]struct {
		network string
		found   *foundServices
		status  metav1.ConditionStatus
		reason  string
	}{
		"52 characters": {strings.Repeat("a", 52), inTenant(), "", ""},
		"53 characters": {strings.Repeat("a", 53), inTenant(), metav1.ConditionFalse, networkv1.ReasonServiceNameTooLong},
		"a Service":     {"lab", inTenant(&corev1.Service{ObjectMeta: own}), metav1.ConditionFalse, networkv1.ReasonServiceNameTaken},
		"an EndpointSlice": {
			"lab", inTenant(&discoveryv1.EndpointSlice{ObjectMeta: own}), metav1.ConditionFalse, networkv1.ReasonServiceNameTaken,
		},
		"not yet": {"lab", inTenant(), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &services{first: "default", misplaced: func(*corev1.Service) bool { return false }}
			pass := &servicePass{services: s, found: tc.found, kept: map[objectID]bool{}, left: maxCreations}
			n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: tc.network}}
			c, err := pass.ensure(t.Context(), n, false)
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				c = &metav1.Condition{}
			}
			if c.Status != tc.status || c.Reason != tc.reason {
				t.Errorf("the condition is %+v", c)
			}
			if err := pass.deleteOthers(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestServicesConcernNetworks: of the tenant's Services, few wake the syncer.
func TestServicesConcernNetworks(t *testing.T) {
	for name, want := range map[string]bool{
		"default/kubernetes": true, "default/kubernetes-lab": true, "kube-system/kube-dns-lab": true,
		"default/web": false, "kube-system/kubernetes": false, "other/kube-dns": false, "default/kubernetesque": false,
	} {
		namespace, name, _ := strings.Cut(name, "/")
		if got := concernsNetworks(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); got != want {
			t.Errorf("%s/%s concerns networks: %t", namespace, name, got)
		}
	}
}
