package resources

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// serving adds a rule to an ingress for each host.
func serving(hosts ...string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) {
		for _, host := range hosts {
			i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
		}
	}
}

func TestHostsOfAnIngress(t *testing.T) {
	for name, tt := range map[string]struct {
		ingress *networkingv1.Ingress
		want    []string
	}{
		"rules":               {ingress("", serving("a.example.com", "*.example.com", "a.example.com")), []string{"a.example.com", "*.example.com"}},
		"a rule without host": {ingress("", serving("")), []string{"*"}},
		"a default backend": {ingress("", func(i *networkingv1.Ingress) {
			i.Spec.DefaultBackend = &networkingv1.IngressBackend{}
		}), []string{"*"}},
		"certificates": {ingress("", func(i *networkingv1.Ingress) {
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example.com"}}, {Hosts: []string{"b.example.com"}}}
		}), []string{"a.example.com", "b.example.com"}},
		"a certificate for all": {ingress("", func(i *networkingv1.Ingress) { i.Spec.TLS = []networkingv1.IngressTLS{{}} }), []string{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ingressHosts(&tt.ingress.Spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHostsThatOverlap checks that one ingress is found by the claims of
// another exactly if their hosts overlap, in both directions.
func TestHostsThatOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a.example.com", "a.example.com", true},
		{"a.example.com", "b.example.com", false},
		{"a.example.com", "*.example.com", true},
		{"a.b.example.com", "*.example.com", true},
		{"example.com", "*.example.com", false},
		{"aexample.com", "*.example.com", false},
		{"*.example.com", "*.example.com", true},
		{"*.a.example.com", "*.example.com", true},
		{"*.a.example.com", "*.b.example.com", false},
		{"a.example.com", "*.com", true},
		{"a.example.com", "*", false},
		{"*.example.com", "*", false},
		{"*", "*", true},
		{"localhost", "localhost", true},
		{"localhost", "*.localhost", false},
	} {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			claims := ingressHosting.claims(ingress("", serving(pair[0])))
			got := slices.ContainsFunc(overlapping(pair[1]), func(claim string) bool { return slices.Contains(claims, claim) })
			if got != tt.want {
				t.Errorf("%s is found by %s: %t, want %t", pair[0], pair[1], got, tt.want)
			}
		}
	}
}

func TestHostsOfAPolicy(t *testing.T) {
	for _, tt := range []struct {
		pattern, host string
		want          bool
	}{
		{"a.example.com", "a.example.com", true},
		{"a.example.com", "b.a.example.com", false},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "*.example.com", true},
		{"*.example.com", "*.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "*.com", false},
		{"*.example.com", "*", false},
		{"*.example.com", "a.example.com.evil", false},
		{"*", "a.example.com", true},
		{"*", "*", true},
	} {
		if got := coversHost(tt.pattern, tt.host); got != tt.want {
			t.Errorf("%s covers %s: %t, want %t", tt.pattern, tt.host, got, tt.want)
		}
	}
}

func TestHostsOfOthers(t *testing.T) {
	const host = "shop.example.com"
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	rival := func(cluster string, created int64) *networkingv1.Ingress {
		return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
			Name: "rival", UID: "m", CreationTimestamp: at(created), Annotations: map[string]string{names.Cluster: cluster},
		}}
	}
	own := func(created int64, hosts ...string) *networkingv1.Ingress {
		return ingress("", serving(hosts...), func(i *networkingv1.Ingress) { i.CreationTimestamp, i.UID = at(created), "n" })
	}
	const rejected, evicted = "rejected", "evicted"
	for name, tt := range map[string]struct {
		own, rival *networkingv1.Ingress
		want       string
	}{
		"a free host":                                {nil, nil, ""},
		"a host of another tenant":                   {nil, rival("red", 1), rejected},
		"a host of the platform":                     {nil, rival("", 1), rejected},
		"an older ingress takes a host":              {own(1, "other.example.com"), rival("red", 2), rejected},
		"both took it, the other first":              {own(2, host), rival("red", 1), evicted},
		"both took it, the other a moment before":    {own(1, host), rival("red", 1), evicted},
		"both took it, the tenant first":             {own(1, host), rival("red", 2), ""},
		"the platform takes a host that is a tenant": {own(1, host), rival("", 2), evicted},
	} {
		t.Run(name, func(t *testing.T) {
			v := view
			if tt.own != nil {
				v.Copy = copyOf(tt.own)
			}
			if tt.rival != nil {
				v.Rivals = rivals(map[string]client.Object{host: tt.rival})
			}
			err := ingressHosting.check(v, ingress("", serving("free.example.com", host)))
			got := ""
			switch {
			case errors.As(err, new(kinds.EvictionError)):
				got = evicted
			case err != nil:
				got = rejected
			}
			if got != tt.want {
				t.Errorf("%q because of %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestHostsThatCannotBeCompared: an object is rejected while not all objects
// with hosts are known, and its copy stays.
func TestHostsThatCannotBeCompared(t *testing.T) {
	const host = "shop.example.com"
	v, unknown := view, errors.New("not all are known")
	v.Rivals = func(string) ([]client.Object, error) { return nil, unknown }
	v.Copy = copyOf(ingress("", serving(host)))
	if err := ingressHosting.check(v, ingress("", serving(host))); !errors.Is(err, unknown) || errors.As(err, new(kinds.EvictionError)) {
		t.Errorf("rejected because of %v, want %v, without an eviction", err, unknown)
	}
}

func TestHostsThatThePolicyNames(t *testing.T) {
	taken := rivals(map[string]client.Object{"shop.red.example.com": ingress("")})
	for name, tt := range map[string]struct {
		policy []string
		host   string
		why    string
	}{
		"all hosts, by default":       {nil, "", "name a host in each rule"},
		"all hosts, allowed":          {[]string{"*"}, "", ""},
		"all hosts, some allowed":     {[]string{"*.red.example.com"}, "", "its host * is not allowed"},
		"another host":                {[]string{"*.red.example.com"}, "shop.example.com", "its host shop.example.com is not allowed"},
		"a host":                      {[]string{"*.red.example.com"}, "a.red.example.com", ""},
		"a host that others have":     {nil, "shop.red.example.com", "in use by another Ingress or route"},
		"which the policy gives, too": {[]string{"*.red.example.com"}, "shop.red.example.com", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := under(tenancyv1alpha1.TenantPolicy{IngressHosts: tt.policy})
			v.Rivals = taken
			err := ingressHosting.check(v, ingress("", serving(tt.host)))
			if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("rejected because of %v, want %q", err, tt.why)
			}
		})
	}
}

// TestManyHostsAreRejected checks the limit: the number of hosts and of their
// labels, which a tenant chooses, take memory.
func TestManyHostsAreRejected(t *testing.T) {
	hosts := make([]string, 20)
	for i := range hosts {
		hosts[i] = strings.Repeat(string(rune('a'+i))+".", 120) + "example.com"
	}
	if claims := ingressHosting.claims(ingress("", serving(hosts[0]))); len(claims) != 122 {
		t.Errorf("one host has %d claims", len(claims))
	}
	if err := ingressHosting.check(view, ingress("", serving(hosts[:10]...))); err != nil {
		t.Errorf("10 hosts are rejected: %v", err)
	}
	if err := ingressHosting.check(view, ingress("", serving(hosts...))); !errors.Is(err, errManyHosts) {
		t.Errorf("20 hosts are rejected because of %v", err)
	}
	// An apiserver that a tenant brings validates nothing.
	long := strings.Repeat("a.", 1<<20) + "example.com"
	if err := ingressHosting.check(view, ingress("", serving(long))); err == nil || !strings.Contains(err.Error(), "longer than 253") {
		t.Errorf("a long host is rejected because of %.400v", err)
	}
}

func TestNamesOfOthersStayInTheTenant(t *testing.T) {
	services := kindOf[kinds.Down[*corev1.Service]](t, Service())
	endpointSlices := kindOf[kinds.Down[*discoveryv1.EndpointSlice]](t, EndpointSlice())
	for _, tt := range []struct {
		policy tenancyv1alpha1.TenantPolicy
		stays  bool
	}{{tenancyv1alpha1.TenantPolicy{}, true}, {tenancyv1alpha1.TenantPolicy{AllowExternalNames: true}, false}} {
		v := under(tt.policy)
		name, plain := &corev1.Service{}, &corev1.Service{}
		name.Spec.Type, name.Spec.ExternalName = "ExternalName", "metadata.internal"
		plain.Spec.Type, plain.Spec.ExternalName = "ClusterIP", "metadata.internal"
		if got := services.Skip(v, name); got != tt.stays {
			t.Errorf("the name stays in the tenant: %t, want %t", got, tt.stays)
		}
		if services.Skip(v, plain) {
			t.Error("a Service with an address stays in the tenant")
		}
		if copied, err := services.Desired(v, plain); err != nil || copied.Spec.ExternalName != "" {
			t.Errorf("a Service with an address has the name %q, error %v", copied.Spec.ExternalName, err)
		}
		if got := endpointSlices.Skip(v, &discoveryv1.EndpointSlice{AddressType: "FQDN"}); got != tt.stays {
			t.Errorf("the slice of names stays in the tenant: %t, want %t", got, tt.stays)
		}
		if endpointSlices.Skip(v, &discoveryv1.EndpointSlice{AddressType: "IPv4"}) {
			t.Error("a slice of addresses stays in the tenant")
		}
	}
}
