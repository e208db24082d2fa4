package kit

import (
	"context"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/dns"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// dnsEndpoint is the address of vc-dns in EndpointSlices, which cannot have a
// loopback address.
const dnsEndpoint = "10.9.9.9"

// SharedDNS is a vc-dns at a loopback address, and a super cluster of which the
// tenants share it.
type SharedDNS struct {
	Super   *local.SuperCluster
	address string
}

// StartSharedDNS starts both, with more options of the super cluster, and stops
// them at the end of the container of specs.
func StartSharedDNS(ctx context.Context, address string, options ...string) *SharedDNS {
	GinkgoHelper()
	super, err := local.Start(ctx, TempDir(), append([]string{
		"--tenant-dns", names.Shared, "--agent=false", "--nodes=1", "--converted-tenants",
		"--tenant-isolation", string(tenancyv1alpha1.IsolationShared),
	}, options...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	// The nodes are simulated, so that no pod of vc-dns would run.
	Expect(client.IgnoreAlreadyExists(super.Client.Create(ctx, Namespace(rbac.Namespace)))).To(Succeed()) // the limits of converted tenants need it, too
	Create(ctx, super.Client, EndpointSlice(rbac.Namespace, "vc-dns-1", dns.Service, dnsEndpoint))
	stop, err := super.StartDNS(address, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	return &SharedDNS{Super: super, address: address}
}

// Tenant creates a tenant, and returns it with its port.
func (d *SharedDNS) Tenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) (t *local.Tenant, port string) {
	GinkgoHelper()
	t = Tenant(ctx, d.Super, VirtualCluster(change...))
	slice := d.SliceOf(t)
	ShouldExist(ctx, d.Super.Client, slice)
	Expect(slice.Endpoints).To(HaveExactElements(HaveField("Addresses", []string{dnsEndpoint})))
	return t, slice.Labels[names.DNSPort]
}

// SliceOf returns the name of the EndpointSlice that directs a tenant to vc-dns.
func (d *SharedDNS) SliceOf(t *local.Tenant) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: t.Super(metav1.NamespaceSystem), Name: names.SharedDNSSlice,
	}}
}

// PodAt creates a pod of a tenant that has an address of this machine.
func (d *SharedDNS) PodAt(ctx context.Context, t *local.Tenant, address string, change ...func(*corev1.Pod)) {
	GinkgoHelper()
	pod := Pod(metav1.NamespaceDefault, "client", append(change, func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"no": "node"} // and no kubelet reports another address
	})...)
	Create(ctx, t.Client, pod)
	copied := SuperOf(t, pod)
	ShouldExist(ctx, d.Super.Client, copied)
	SetPodStatus(ctx, d.Super.Client, copied, func(s *corev1.PodStatus) {
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
