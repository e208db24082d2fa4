package resources

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// service returns a service with a spec.
func service(spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta("web"), Spec: spec}
}

// http returns a port with the node port that one side allocated.
func http(nodePort int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080), NodePort: nodePort,
	}
}

var selector = map[string]string{"app.kubernetes.io/name": "web"}

func TestServiceGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	if k.OnDemand || k.Adopt != nil {
		t.Errorf("on demand %t, adopt %t; want neither", k.OnDemand, k.Adopt != nil)
	}
	tests := map[string]struct{ tenant, want corev1.ServiceSpec }{
		"the super cluster gives the cluster IPs": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, Selector: selector, Ports: []corev1.ServicePort{http(0)},
				ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}, SessionAffinity: corev1.ServiceAffinityClientIP,
			},
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, Selector: selector, Ports: []corev1.ServicePort{http(0)},
				SessionAffinity: corev1.ServiceAffinityClientIP,
			},
		},
		"the families of the tenant's addresses are not the super cluster's": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol},
				IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
			},
			corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack)},
		},
		"two families are preferred where there are two": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
				IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			},
			corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack)},
		},
		"two families that are required": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
				IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			},
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
				IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			},
		},
		"how traffic is spread": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityClientIP,
				SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}},
				InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal),
				TrafficDistribution:   new(corev1.ServiceTrafficDistributionPreferSameZone),
			},
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityClientIP,
				SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}},
				InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal),
				TrafficDistribution:   new(corev1.ServiceTrafficDistributionPreferSameZone),
			},
		},
		"node ports are those that the tenant sees": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{http(30001)},
				ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
			},
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{http(30001)},
				ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
			},
		},
		"the super cluster gives the node ports behind a load balancer": {
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{http(30001), {Port: 443, NodePort: 30002}},
				HealthCheckNodePort: 30003, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			},
			corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{http(0), {Port: 443}},
				ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			},
		},
		"headless stays headless": {
			corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None", ClusterIPs: []string{"None"}},
			corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "None", ClusterIPs: []string{"None"}},
		},
		"an external name": {
			corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
			corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
		},
		"an external name has no cluster IP, not even none": {
			corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com", ClusterIP: "None"},
			corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := service(tt.tenant)
			tenant.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
			got, err := k.Desired(view, tenant)
			if err != nil {
				t.Fatal(err)
			}
			want := &corev1.Service{Spec: tt.want}
			want.Labels = map[string]string{"arktos.futurewei.com/network": "default"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceWithExternalIPsIsRefused(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	tenant := service(corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ExternalIPs: []string{"192.0.2.1"}})
	if got, err := k.Desired(view, tenant); !errors.Is(err, errExternalIPs) {
		t.Errorf("desired is %v with error %v, want %v", got, err, errExternalIPs)
	}
}

// TestServiceFindsItsPods checks that the copies of pods have all labels in a
// tenant's selector.
func TestServiceFindsItsPods(t *testing.T) {
	services := kindOf[kinds.Down[*corev1.Service]](t, Service())
	pods := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for _, key := range []string{"app", "k8s-app", "app.kubernetes.io/name", "statefulset.kubernetes.io/pod-name", "example.com/x"} {
		tenant := service(corev1.ServiceSpec{Selector: map[string]string{key: "web"}})
		pod := tenantPod(func(p *corev1.Pod) { p.Labels = map[string]string{key: "web"} })
		s := down(t, services, tenant)
		if p := down(t, pods, pod); !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
			t.Errorf("the copy's selector %v does not match the pod's copy's labels %v", s.Spec.Selector, p.Labels)
		}
	}
}

func TestNetworkOfAService(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	tenant := service(corev1.ServiceSpec{})
	if got := down(t, k, tenant).Labels[networkLabel]; got != "default" {
		t.Errorf("the network of a service that names none is %q", got)
	}
	tenant.Labels = map[string]string{"arktos.futurewei.com/network": "mine"}
	if got := down(t, k, tenant).Labels[networkLabel]; got != "default" {
		t.Errorf("the network of a service that may not name one is %q", got)
	}
	if got := downIn(t, allowing("Service", []string{networkLabel}, nil), k, tenant).Labels[networkLabel]; got != "mine" {
		t.Errorf("the network of a service that names one is %q", got)
	}
}

// addressed is a view of a tenant with Service addresses of its own.
func addressed() kinds.View {
	v := view
	v.Tenant.ServiceCIDR = netip.MustParsePrefix("10.104.16.0/20")
	return v
}

// TestServiceKeepsItsAddress checks that a tenant with a range of the super
// cluster's addresses sees exactly the addresses that its pods reach.
func TestServiceKeepsItsAddress(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	tests := map[string]struct {
		ips  []string
		want string // the copy's address, or a part of the error
		ok   bool
	}{
		"its own":                       {[]string{"10.104.16.7"}, "10.104.16.7", true},
		"the last of its own":           {[]string{"10.104.31.255"}, "10.104.31.255", true},
		"another tenant's":              {[]string{"10.104.32.1"}, "10.104.16.0/20", false},
		"the super cluster's":           {[]string{"10.96.0.1"}, "10.104.16.0/20", false},
		"its own and an unassigned one": {[]string{"10.104.16.7", "fd00::7"}, "fd00::7", false},
		"none, since it wants none":     {[]string{"None"}, "None", true},
		"none, so that the super cluster would choose one": {nil, "no address yet", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := service(corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIPs: tt.ips})
			if len(tt.ips) > 0 {
				tenant.Spec.ClusterIP = tt.ips[0]
			}
			got, err := k.Desired(addressed(), tenant)
			switch {
			case tt.ok && (err != nil || got.Spec.ClusterIP != tt.want):
				t.Errorf("got %v (%v), want %s", got, err, tt.want)
			case !tt.ok && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v (%v), want an error with %q", got, err, tt.want)
			}
		})
	}
}

// TestServiceRejectedByChance checks that only a rejected choice of the super
// cluster is retried at once.
func TestServiceRejectedByChance(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	services := corev1.Resource("services")
	denied := errors.New("ValidatingAdmissionPolicy 'service-addresses.tenancy.x-k8s.io' with binding 'b' denied request: reserved")
	tests := map[string]struct {
		rejection error
		want      bool
	}{
		"by the policy":           {apierrors.NewForbidden(services, "web", denied), true},
		"by another policy":       {apierrors.NewForbidden(services, "web", errors.New("ValidatingAdmissionPolicy 'other' denied request")), false},
		"by a policy that failed": {apierrors.NewGenericServerResponse(422, "post", services, "web", denied.Error(), 0, true), false},
		"over a quota":            {apierrors.NewForbidden(services, "web", errors.New("exceeded quota")), false},
		"taken":                   {apierrors.NewAlreadyExists(services, "web"), false},
		"no answer":               {denied, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.ByChance(tt.rejection); got != tt.want {
				t.Errorf("ByChance = %t, want %t", got, tt.want)
			}
		})
	}
}

// TestServiceSaysItsAddressTwice checks inconsistent fields, which an untrusted
// apiserver can return.
func TestServiceSaysItsAddressTwice(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	const own, foreign = "10.104.16.7", "10.104.32.10"
	tests := map[string]struct {
		kind corev1.ServiceType
		ip   string
		ips  []string
		want []string // nil if it is rejected
	}{
		"in one field alone":               {"ClusterIP", own, nil, []string{own}},
		"in the other field alone":         {"ClusterIP", "", []string{own}, nil},
		"another tenant's in the first":    {"ClusterIP", foreign, nil, nil},
		"another tenant's hidden":          {"ClusterIP", foreign, []string{own}, nil},
		"another tenant's in the second":   {"ClusterIP", own, []string{foreign}, nil},
		"another tenant's as a further":    {"ClusterIP", own, []string{own, foreign}, nil},
		"another tenant's behind none":     {"ClusterIP", "None", []string{foreign}, nil},
		"none, spelled otherwise":          {"ClusterIP", "none", []string{"none"}, nil},
		"as IPv4 in IPv6":                  {"ClusterIP", "::ffff:" + own, []string{"::ffff:" + own}, nil},
		"with a zone":                      {"ClusterIP", "fe80::1%eth0", nil, nil},
		"with leading zeros":               {"ClusterIP", "010.104.16.007", nil, nil},
		"no text of an address":            {"LoadBalancer", "*", nil, nil},
		"with a port":                      {"NodePort", own + ":80", nil, nil},
		"an external name has no address":  {"ExternalName", foreign, []string{foreign}, []string{}},
		"of no type, which is a ClusterIP": {"", foreign, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := k.Desired(addressed(), service(corev1.ServiceSpec{Type: tt.kind, ClusterIP: tt.ip, ClusterIPs: tt.ips}))
			switch {
			case tt.want == nil && err == nil:
				t.Errorf("is synced down with %v", got.Spec.ClusterIPs)
			case tt.want != nil && (err != nil || !slices.Equal(got.Spec.ClusterIPs, tt.want)),
				len(tt.want) > 0 && got.Spec.ClusterIP != tt.want[0]:
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
		})
	}
}

func TestServiceAsksOfLoadBalancers(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	allowed := view
	allowed.Tenant.Policy.LoadBalancerCIDRs = []tenancyv1alpha1.CIDR{"192.0.2.0/24"}
	allowed.Tenant.Policy.LoadBalancerClasses = []string{"example.com/lb"}
	address := corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerIP: "192.0.2.7"}
	class := corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("example.com/lb")}
	tests := map[string]struct {
		view kinds.View
		spec corev1.ServiceSpec
		ok   bool
	}{
		"an address":                      {view, address, false},
		"an address that is allowed":      {allowed, address, true},
		"another address than is allowed": {allowed, corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerIP: "198.51.100.7"}, false},
		"no address":                      {allowed, corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerIP: "192.0.2.0/24"}, false},
		"a class":                         {view, class, false},
		"a class that is offered":         {allowed, class, true},
		"another class than is offered":   {allowed, corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("x")}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := k.Desired(tt.view, service(tt.spec)); (err == nil) != tt.ok {
				t.Errorf("the error is %v, want none: %t", err, tt.ok)
			}
		})
	}
}

// TestServiceWithAnotherAddress checks that a copy with another address than it
// should have is recreated.
func TestServiceWithAnotherAddress(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	at := func(ip string) *corev1.Service { return service(corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: ip}) }
	tests := map[string]struct {
		super, desired string
		want           bool
	}{
		"the same":                      {"10.104.16.7", "10.104.16.7", false},
		"another":                       {"10.96.0.7", "10.104.16.7", true},
		"any":                           {"10.96.0.7", "", false},
		"one where there was none":      {"", "10.104.16.7", false},
		"none where there was one":      {"10.96.0.7", "None", true},
		"one where none was wanted yet": {"None", "10.104.16.7", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Replace(at(tt.super), at(tt.desired)); got != tt.want {
				t.Errorf("Replace = %t, want %t", got, tt.want)
			}
		})
	}
	was := service(corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"})
	k.Merge(was, at("10.104.16.7"))
	if was.Spec.ClusterIP != "10.104.16.7" {
		t.Errorf("a copy that had no address gets %q", was.Spec.ClusterIP)
	}
}

func TestServiceMerge(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	ip := func(spec corev1.ServiceSpec) corev1.ServiceSpec {
		spec.ClusterIP, spec.ClusterIPs = "10.0.0.5", []string{"10.0.0.5", "fd00::5"}
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
		return spec
	}
	ports := func(ports ...corev1.ServicePort) []corev1.ServicePort { return ports }
	moved := http(0)
	moved.Port = 81
	renamed := http(0)
	renamed.Name = "web"
	renamedHere := renamed
	renamedHere.NodePort = 31001
	udp := http(0)
	udp.Protocol = corev1.ProtocolUDP

	tests := map[string]struct {
		super, tenant, want corev1.ServiceSpec
	}{
		"cluster IPs are kept": {
			ip(corev1.ServiceSpec{Type: "ClusterIP", Ports: ports(http(0))}),
			corev1.ServiceSpec{
				Type: "ClusterIP", Ports: ports(http(0)), ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"},
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			},
			ip(corev1.ServiceSpec{Type: "ClusterIP", Ports: ports(http(0))}),
		},
		"selector and ports change": {
			ip(corev1.ServiceSpec{Type: "ClusterIP", Selector: map[string]string{"old": "1"}, Ports: ports(http(0))}),
			corev1.ServiceSpec{Type: "ClusterIP", Selector: selector, Ports: ports(moved, udp)},
			ip(corev1.ServiceSpec{Type: "ClusterIP", Selector: selector, Ports: ports(moved, udp)}),
		},
		"changes in the super cluster are reverted": {
			ip(corev1.ServiceSpec{Type: "ClusterIP", ExternalIPs: []string{"192.0.2.1"}, PublishNotReadyAddresses: true}),
			corev1.ServiceSpec{Type: "ClusterIP"},
			ip(corev1.ServiceSpec{Type: "ClusterIP"}),
		},
		"node ports are kept, also of a port that is called otherwise": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(renamed)},
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(renamedHere)}),
		},
		"a node port is what the tenant sees": {
			ip(corev1.ServiceSpec{Type: "NodePort", Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "NodePort", Ports: ports(http(30007))},
			ip(corev1.ServiceSpec{Type: "NodePort", Ports: ports(http(30007))}),
		},
		"node ports behind a load balancer become those that the tenant sees": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", HealthCheckNodePort: 31003, Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "NodePort", Ports: ports(http(30007))},
			ip(corev1.ServiceSpec{Type: "NodePort", Ports: ports(http(30007))}),
		},
		"a load balancer that wants no node ports gives them back": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(30007)), AllocateLoadBalancerNodePorts: new(false)},
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(0)), AllocateLoadBalancerNodePorts: new(false)}),
		},
		"the class that the super cluster chose is kept": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("example.com/lb")}),
			corev1.ServiceSpec{Type: "LoadBalancer"},
			ip(corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("example.com/lb")}),
		},
		"a service that is no longer a load balancer has no class": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("example.com/lb")}),
			corev1.ServiceSpec{Type: "ClusterIP"},
			ip(corev1.ServiceSpec{Type: "ClusterIP"}),
		},
		"one family, where there were two, is for the apiserver to choose": {
			ip(corev1.ServiceSpec{Type: "ClusterIP"}),
			corev1.ServiceSpec{Type: "ClusterIP", IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack)},
			func() corev1.ServiceSpec {
				spec := ip(corev1.ServiceSpec{Type: "ClusterIP"})
				spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
				return spec
			}(),
		},
		"node ports follow their ports, not their places": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(corev1.ServicePort{Port: 443, NodePort: 31002}, http(31001))}),
			corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(0), corev1.ServicePort{Port: 443})},
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(31001), corev1.ServicePort{Port: 443, NodePort: 31002})}),
		},
		"a new port, or the same of another protocol, gets a node port of its own": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(moved, udp)},
			ip(corev1.ServiceSpec{Type: "LoadBalancer", Ports: ports(moved, udp)}),
		},
		"the port of the health check is kept": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", HealthCheckNodePort: 31003, Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "LoadBalancer", HealthCheckNodePort: 30003, Ports: ports(http(0))},
			ip(corev1.ServiceSpec{Type: "LoadBalancer", HealthCheckNodePort: 31003, Ports: ports(http(31001))}),
		},
		"a service that becomes ClusterIP releases its node ports": {
			ip(corev1.ServiceSpec{Type: "LoadBalancer", HealthCheckNodePort: 31003, Ports: ports(http(31001))}),
			corev1.ServiceSpec{Type: "ClusterIP", Ports: ports(http(0))},
			ip(corev1.ServiceSpec{Type: "ClusterIP", Ports: ports(http(0))}),
		},
		"a service that becomes ExternalName releases its addresses": {
			ip(corev1.ServiceSpec{Type: "ClusterIP"}),
			corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"},
			corev1.ServiceSpec{
				Type: "ExternalName", ExternalName: "example.com",
				// The apiserver clears these with the type.
				IPFamilies:     []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
				IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			},
		},
		"a service that was ExternalName gets addresses": {
			corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"},
			corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "10.96.0.7", Ports: ports(http(0))},
			corev1.ServiceSpec{Type: "ClusterIP", Ports: ports(http(0))},
		},
		"headless stays headless": {
			corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "None", ClusterIPs: []string{"None"}},
			corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "None", ClusterIPs: []string{"None"}, Selector: selector},
			corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "None", ClusterIPs: []string{"None"}, Selector: selector},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			super := &corev1.Service{ObjectMeta: superMeta("web"), Spec: tt.super}
			desired, err := k.Desired(view, service(tt.tenant))
			if err != nil {
				t.Fatal(err)
			}
			k.Merge(super, desired)
			if diff := cmp.Diff(&corev1.Service{ObjectMeta: superMeta("web"), Spec: tt.want}, super); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
			once := super.DeepCopy()
			k.Merge(super, desired)
			unchanged(t, "the copy, by a second merge,", once, super)
		})
	}
}

func TestServiceReplace(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	plain := corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "10.0.0.5"}
	asked := corev1.ServiceSpec{Type: "ClusterIP"}
	none := corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "None"}
	external := corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"}
	tests := map[string]struct {
		super, desired corev1.ServiceSpec
		want           bool
	}{
		"a plain service":                  {plain, asked, false},
		"a headless service":               {none, none, false},
		"a plain one becomes headless":     {plain, none, true},
		"a headless one becomes plain":     {none, asked, true},
		"a plain one becomes external":     {plain, external, false},
		"an external one becomes plain":    {external, asked, false},
		"an external one becomes headless": {external, none, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Replace(service(tt.super), service(tt.desired)); got != tt.want {
				t.Errorf("Replace = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestServiceStatusComesUp(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Service]](t, Service())
	address := corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}
	condition := func(generation int64, message string) metav1.Condition {
		return metav1.Condition{
			Type: "example.com/Announced", Status: metav1.ConditionTrue, Reason: "Done",
			ObservedGeneration: generation, Message: message, LastTransitionTime: metav1.Unix(1700000000, 0),
		}
	}
	tests := map[string]struct {
		kind        corev1.ServiceType
		super, want corev1.ServiceStatus
	}{
		"addresses of a load balancer": {
			corev1.ServiceTypeLoadBalancer, corev1.ServiceStatus{LoadBalancer: address}, corev1.ServiceStatus{LoadBalancer: address},
		},
		"of another type, the tenant's apiserver would take no addresses": {
			corev1.ServiceTypeClusterIP, corev1.ServiceStatus{LoadBalancer: address}, corev1.ServiceStatus{},
		},
		"a condition, in the tenant's words": {
			corev1.ServiceTypeClusterIP,
			corev1.ServiceStatus{Conditions: []metav1.Condition{condition(4, "announced "+superDefault+"/web")}},
			corev1.ServiceStatus{Conditions: []metav1.Condition{condition(7, "announced default/web")}},
		},
		"a condition of an earlier state": {
			corev1.ServiceTypeClusterIP,
			corev1.ServiceStatus{Conditions: []metav1.Condition{condition(3, "")}},
			corev1.ServiceStatus{Conditions: []metav1.Condition{condition(0, "")}},
		},
		"no addresses": {corev1.ServiceTypeLoadBalancer, corev1.ServiceStatus{}, corev1.ServiceStatus{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := service(corev1.ServiceSpec{Type: tt.kind, ClusterIP: "10.96.0.7"})
			tenant.Generation = 7
			tenant.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
			super := service(corev1.ServiceSpec{Type: tt.kind, ClusterIP: "10.0.0.5"})
			super.Generation = 4
			super.Status = tt.super
			was, want := tenant.DeepCopy(), tenant.DeepCopy()
			want.Status = tt.want
			k.Status(view, tenant, super)
			unchanged(t, "another status than wanted", want, tenant)
			if k.Same(was, tenant) {
				t.Error("another status is the same")
			}
			if !k.Same(want, tenant) {
				t.Error("a status is not the same as itself")
			}
		})
	}
}

// TestServiceFamilies: the copy requests the IP families of the tenant's addresses
// and no more, and follows when a second address is added or removed.
func TestServiceFamilies(t *testing.T) {
	view := kinds.View{Tenant: translate.Tenant{
		ServiceCIDR: netip.MustParsePrefix("10.104.16.0/20"), SecondaryServiceCIDR: netip.MustParsePrefix("fd00:104::/116"),
	}}
	service := func(policy corev1.IPFamilyPolicy, ips ...string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ips[0], ClusterIPs: ips, IPFamilyPolicy: &policy,
		}}
	}
	one := service(corev1.IPFamilyPolicyPreferDualStack, "10.104.16.7")
	two := service(corev1.IPFamilyPolicyPreferDualStack, "10.104.16.7", "fd00:104::7")
	desired := func(of *corev1.Service) *corev1.Service {
		t.Helper()
		super, err := desiredService(view, of)
		if err != nil {
			t.Fatal(err)
		}
		return super
	}
	if _, err := desiredService(view, service(corev1.IPFamilyPolicyRequireDualStack, "10.104.16.7", "fd00:105::7")); err == nil {
		t.Error("an address of another tenant behind its own is not rejected")
	}
	super := desired(one)
	if *super.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		t.Errorf("the super cluster adds an address by the policy %s", *super.Spec.IPFamilyPolicy)
	}
	super.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol} // as an apiserver does
	for _, of := range []*corev1.Service{two, two, one} {
		mergeService(super, desired(of))
		families := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}[:len(of.Spec.ClusterIPs)]
		if diff := cmp.Diff(of.Spec.ClusterIPs, super.Spec.ClusterIPs); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(families, super.Spec.IPFamilies); diff != "" {
			t.Error(diff)
		}
	}
}
