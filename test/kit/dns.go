package kit

import (
	"context"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"
	"github.com/virtualcluster/virtualcluster/controllers/shareddns"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// dnsEndpoint is the address of vc-dns in EndpointSlices, which cannot have a
// loopback address.
const dnsEndpoint = "10.9.9.9"

// SharedDNS is a DNS that tenants share, at a loopback address of its own.
type SharedDNS struct {
	super   *local.SuperCluster
	address string
}

// StartSharedDNS runs vc-dns at a loopback address, and the reconciler that
// directs tenants to it, until the end of the container of specs.
func StartSharedDNS(ctx context.Context, super *local.SuperCluster, address string) *SharedDNS {
	GinkgoHelper()
	service := types.NamespacedName{Namespace: "shared-dns", Name: "vc-dns"}
	Create(ctx, super.Client, Namespace(service.Namespace), EndpointSlice(service.Namespace, "vc-dns-1", service.Name, dnsEndpoint))
	cached, err := shareddns.CachedObjects(service)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(super.Config, manager.Options{
		Scheme: super.Client.Scheme(), Cache: cache.Options{ByObject: cached}, Metrics: server.Options{BindAddress: "0"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&shareddns.Reconciler{Client: mgr.GetClient(), Service: service}).SetupWithManager(mgr)).To(Succeed())
	managed, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(managed) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	stop, err := super.StartDNS(address, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	return &SharedDNS{super: super, address: address}
}

// Join creates the DNS Service in a tenant that vc-manager ensures there, and
// returns the tenant's port.
func (d *SharedDNS) Join(ctx context.Context, t *local.Tenant) (port string) {
	GinkgoHelper()
	objects, err := dns.Addons("")[0].Objects(t.VC)
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range objects {
		Create(ctx, t.Client, obj)
	}
	slices := &discoveryv1.EndpointSliceList{}
	Eventually(func() ([]discoveryv1.EndpointSlice, error) {
		err := d.super.Client.List(ctx, slices, client.InNamespace(t.Super(metav1.NamespaceSystem)), client.HasLabels{names.DNSPort})
		return slices.Items, err
	}).Should(HaveLen(1))
	slice := slices.Items[0]
	Expect(slice.Endpoints).To(HaveExactElements(HaveField("Addresses", []string{dnsEndpoint})))
	return slice.Labels[names.DNSPort]
}

// PodAt creates a pod of a tenant that has an address of this machine.
func (d *SharedDNS) PodAt(ctx context.Context, t *local.Tenant, address string) {
	GinkgoHelper()
	pod := Pod(metav1.NamespaceDefault, "client", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"no": "node"} // and no kubelet reports another address
	})
	Create(ctx, t.Client, pod)
	copied := SuperOf(t, pod)
	ShouldExist(ctx, d.super.Client, copied)
	SetPodStatus(ctx, d.super.Client, copied, func(s *corev1.PodStatus) {
		s.PodIP, s.PodIPs = address, []corev1.PodIP{{IP: address}}
	})
}

// LookUp returns the addresses of a name, as a client at an address gets them at
// a port.
func (d *SharedDNS) LookUp(ctx context.Context, from, port, name string) ([]string, error) {
	return d.resolver(from, port).LookupHost(ctx, name)
}

// LookUpAddress returns the names of an address in the same way.
func (d *SharedDNS) LookUpAddress(ctx context.Context, from, port, address string) ([]string, error) {
	return d.resolver(from, port).LookupAddr(ctx, address)
}

func (d *SharedDNS) resolver(from, port string) *net.Resolver {
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", net.JoinHostPort(d.address, port))
	}}
}
