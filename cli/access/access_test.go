package access

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vc-system", Name: "tenants"},
		Spec: corev1.ServiceSpec{
			ClusterIPs: []string{"10.96.0.7"}, ExternalIPs: []string{"192.0.2.1"},
			Ports: []corev1.ServicePort{{Name: "metrics", Port: 8443}, {Name: "https", Port: 443}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{
			Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.2"}, {Hostname: "lb.example.com"}},
		}},
	}
}

func TestServicePort(t *testing.T) {
	cases := map[string]struct {
		host, port, want string
		found            bool
	}{
		"ClusterIP":       {"10.96.0.7", "443", "https", true},
		"OtherPort":       {"10.96.0.7", "8443", "metrics", true},
		"UnknownPort":     {"10.96.0.7", "80", "", false},
		"NoPort":          {"10.96.0.7", "https", "", false},
		"ExternalIP":      {"192.0.2.1", "443", "https", true},
		"LoadBalancer":    {"192.0.2.2", "443", "https", true},
		"LoadBalancerDNS": {"lb.example.com", "443", "https", true},
		"ShortName":       {"tenants.vc-system", "443", "https", true},
		"Name":            {"tenants.vc-system.svc", "443", "https", true},
		"FullName":        {"tenants.vc-system.svc.cluster.local", "443", "https", true},
		"OtherNamespace":  {"tenants.team.svc", "443", "", false},
		"LongerName":      {"tenants.vc-system.svcs", "443", "", false},
		"Empty":           {"", "443", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := servicePort(service(), tc.host, tc.port)
			if got != tc.want || found != tc.found {
				t.Errorf("got %q, %t, want %q, %t", got, found, tc.want, tc.found)
			}
		})
	}
}

func TestBackendOf(t *testing.T) {
	slice := func(ready *bool, ref *corev1.ObjectReference) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			Ports:     []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(1))}, {Name: new("https"), Port: new(int32(6443))}},
			Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ready}, TargetRef: ref}},
		}
	}
	pod := &corev1.ObjectReference{Kind: "Pod", Namespace: "vc-system", Name: "host-0"}
	cases := map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   Backend
	}{
		"Ready":         {[]discoveryv1.EndpointSlice{slice(new(true), pod)}, Backend{"vc-system", "host-0", 6443}},
		"Unset":         {[]discoveryv1.EndpointSlice{slice(nil, pod)}, Backend{"vc-system", "host-0", 6443}},
		"NotReady":      {[]discoveryv1.EndpointSlice{slice(new(false), pod)}, Backend{}},
		"NoPod":         {[]discoveryv1.EndpointSlice{slice(new(true), nil)}, Backend{}},
		"InAnotherOne":  {[]discoveryv1.EndpointSlice{slice(new(false), pod), slice(new(true), pod)}, Backend{"vc-system", "host-0", 6443}},
		"NoneAtAll":     {nil, Backend{}},
		"OtherKindOfIt": {[]discoveryv1.EndpointSlice{slice(new(true), &corev1.ObjectReference{Kind: "Node", Name: "n"})}, Backend{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, found := backendOf(tc.slices, "https"); got != tc.want || found != (tc.want != Backend{}) {
				t.Errorf("got %v, %t, want %v", got, found, tc.want)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	for server, want := range map[string]string{
		"https://red.example.com":      "red.example.com:443",
		"https://10.0.0.1:6443/prefix": "10.0.0.1:6443",
		"https://[fd00::1]:6443":       "[fd00::1]:6443",
	} {
		if got, err := Address(server); err != nil || got != want {
			t.Errorf("Address(%q) = %q, %v", server, got, err)
		}
	}
	for _, server := range []string{"", "red", "https://"} {
		if got, err := Address(server); err == nil {
			t.Errorf("Address(%q) = %q", server, got)
		}
	}
}

// TestThrough: the certificate is verified for the name that it was verified
// for before the port was forwarded.
func TestThrough(t *testing.T) {
	for name, want := range map[string]string{"": "10.0.0.1", "red.tenants": "red.tenants"} {
		config := &rest.Config{Host: "https://10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{ServerName: name}}
		got, err := through(config, "127.0.0.1:1234")
		if err != nil {
			t.Fatal(err)
		}
		if got.Host != "https://127.0.0.1:1234" || got.ServerName != want || config.ServerName != name {
			t.Errorf("got %s for %q, want %q", got.Host, got.ServerName, want)
		}
	}
}

func TestMerge(t *testing.T) {
	key := client.ObjectKey{Namespace: "team", Name: "red"}
	own := clientcmdapi.NewConfig()
	own.CurrentContext = "super"
	own.Contexts["super"] = &clientcmdapi.Context{Cluster: "super", AuthInfo: "admin"}
	own.AuthInfos["vc/team/red"] = &clientcmdapi.AuthInfo{Token: "expired"}
	config := &rest.Config{Host: "https://10.0.0.1", TLSClientConfig: rest.TLSClientConfig{ServerName: "red"}}
	merged := Merge(own, Kubeconfig(key, config, &clientcmdapi.AuthInfo{Token: "new"}))
	if merged.CurrentContext != "super" || merged.AuthInfos["vc/team/red"].Token != "new" || len(merged.Contexts) != 2 {
		t.Errorf("got %v", merged)
	}
	if own.AuthInfos["vc/team/red"].Token != "expired" || len(own.Contexts) != 1 {
		t.Error("the kubeconfig that was merged into has changed")
	}
}

// TestContextNamesDiffer: a dash in a name or in a namespace makes no two
// tenants the same.
func TestContextNamesDiffer(t *testing.T) {
	a, b := client.ObjectKey{Namespace: "a-b", Name: "c"}, client.ObjectKey{Namespace: "a", Name: "b-c"}
	if ContextName(a) == ContextName(b) {
		t.Errorf("both are %s", ContextName(a))
	}
}

// TestPermanentKeepsTheCredentials: a kubeconfig that is written has the same
// credentials when it is read.
func TestPermanentKeepsTheCredentials(t *testing.T) {
	want := &rest.Config{
		Host: "https://10.0.0.1", Username: "u", Password: "p", Impersonate: rest.ImpersonationConfig{UserName: "x", Groups: []string{"g"}},
	}
	data, err := clientcmd.Write(*Kubeconfig(client.ObjectKey{Namespace: "team", Name: "red"}, want, Permanent(want)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Impersonate, got.Impersonate, cmpopts.EquateEmpty()); diff != "" || got.Username != "u" || got.Password != "p" {
		t.Error(diff, got)
	}
	if strings.Contains(string(data), "insecure") {
		t.Error("the server is not verified")
	}
}
