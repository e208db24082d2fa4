package chain_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// serve adds a tenant with the ServiceCIDR that its bootstrap creates.
func serve(t *testing.T, c *chain.Chain, spec chain.Spec, cidr string) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	cidrs := strings.Split(cidr, ",")
	for _, text := range cidrs {
		_, network, err := net.ParseCIDR(text)
		g.Expect(err).NotTo(HaveOccurred())
		spec.ServiceCIDRs = append(spec.ServiceCIDRs, *network)
	}
	tenant, err := c.Add(spec)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { c.Remove(tenant) })
	client, err := kubernetes.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.NetworkingV1().ServiceCIDRs().Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // the tenant is served again
		return tenant, client
	}
	g.Expect(err).NotTo(HaveOccurred())
	createNamespace(t, client, "team")
	return tenant, client
}

func nodePort(name, clusterIP string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: clusterIP, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}},
		},
	}
}

// TestServicesOfEqualAddresses: ClusterIPs and node ports are of a tenant.
func TestServicesOfEqualAddresses(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	_, blue := serve(t, c, chain.Spec{Name: "blue"}, "10.96.0.0/16")
	for _, client := range []kubernetes.Interface{red, blue} {
		made, err := client.CoreV1().Services("team").Create(t.Context(), nodePort("web", "10.96.0.10", 30080), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(made.Spec.ClusterIP).To(Equal("10.96.0.10"))
		g.Expect(made.Spec.Ports[0].NodePort).To(Equal(int32(30080)))
	}
	_, err := red.CoreV1().Services("team").Create(t.Context(), nodePort("other", "10.96.0.10", 0), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("provided IP is already allocated")))
	_, err = red.CoreV1().Services("team").Create(t.Context(), nodePort("other", "", 30080), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("provided port is already allocated")))

	g.Expect(red.CoreV1().Services("team").Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	_, err = red.CoreV1().Services("team").Create(t.Context(), nodePort("other", "10.96.0.10", 30080), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = blue.CoreV1().Services("team").Create(t.Context(), nodePort("other", "10.96.0.10", 0), metav1.CreateOptions{})
	g.Expect(err).To(HaveOccurred())
}

// TestOwnServiceNeedsNoAllocators: the first Service of a tenant creates its
// allocators.
func TestOwnServiceNeedsNoAllocators(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	tenant, client := add(t, c, "red")
	g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
	_, err := client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tenant.HasAllocators()).To(BeFalse())
	own, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	address, err := client.NetworkingV1().IPAddresses().Get(t.Context(), own.Spec.ClusterIP, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.CoreV1().Services("default").Create(t.Context(), nodePort("web", own.Spec.ClusterIP, 0), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("provided IP is already allocated")))
	g.Expect(tenant.HasAllocators()).To(BeTrue())
	repaired, err := client.NetworkingV1().IPAddresses().Get(t.Context(), own.Spec.ClusterIP, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(repaired.UID).To(Equal(address.UID)) // it was as allocators create it
}

// TestServiceVerbs: every write of a Service releases what it does not need any
// more, and no write of one tenant releases what the other has.
func TestServiceVerbs(t *testing.T) {
	ctx := t.Context()
	c, _ := newChain(t)
	_, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	_, blue := serve(t, c, chain.Spec{Name: "blue"}, "10.96.0.0/16")
	services := red.CoreV1().Services("team")
	finalized := []byte(`{"metadata":{"finalizers":["example.com/x"]}}`)
	_, err := blue.CoreV1().Services("team").Create(ctx, nodePort("web", "10.96.0.10", 30080), metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, end := range map[string]func(g Gomega){
		"delete": func(g Gomega) { g.Expect(services.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed()) },
		"delete collection": func(g Gomega) {
			all := red.CoreV1().RESTClient().Delete().Namespace("team").Resource("services").Param("labelSelector", "app=web")
			g.Expect(all.Do(ctx).Error()).To(Succeed())
		},
		"update to an external name": func(g Gomega) {
			_, err := services.Patch(ctx, "web", types.MergePatchType,
				[]byte(`{"spec":{"type":"ExternalName","externalName":"example.com","clusterIP":null,"clusterIPs":null,"ports":null,`+
					`"ipFamilies":null,"ipFamilyPolicy":null,"externalTrafficPolicy":null,"internalTrafficPolicy":null}}`), metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(services.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		},
		"removal of the last finalizer": func(g Gomega) {
			_, err := services.Patch(ctx, "web", types.MergePatchType, finalized, metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(services.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
			_, err = services.Get(ctx, "web", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = services.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		},
		"removal of the last finalizer by the status": func(g Gomega) {
			_, err := services.Patch(ctx, "web", types.MergePatchType, finalized, metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(services.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
			_, err = services.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}, "status")
			g.Expect(err).NotTo(HaveOccurred())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			web := nodePort("web", "10.96.0.10", 30080)
			web.Labels = map[string]string{"app": "web"}
			_, err := services.Create(ctx, web, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web"}} //nolint:staticcheck // a Service deletes its own
			_, err = red.CoreV1().Endpoints("team").Create(ctx, endpoints, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			end(g)
			_, err = services.Get(ctx, "web", metav1.GetOptions{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			_, err = red.CoreV1().Endpoints("team").Get(ctx, "web", metav1.GetOptions{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			_, err = red.NetworkingV1().IPAddresses().Get(ctx, "10.96.0.10", metav1.GetOptions{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			_, err = blue.NetworkingV1().IPAddresses().Get(ctx, "10.96.0.10", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// TestServicesAllocateOnce: concurrent writes never allocate an address twice,
// and one tenant's full ranges are its own.
func TestServicesAllocateOnce(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/27")
	_, blue := serve(t, c, chain.Spec{Name: "blue"}, "10.96.0.0/27")
	var made sync.WaitGroup
	for i := range 60 { // of 30 addresses
		made.Go(func() {
			_, _ = red.CoreV1().Services("team").Create(t.Context(), nodePort(fmt.Sprintf("web-%d", i), "", 0), metav1.CreateOptions{})
		})
	}
	made.Wait()
	list, err := red.CoreV1().Services("team").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(30))
	ips, ports := sets.New[string](), sets.New[int32]()
	for _, each := range list.Items {
		ips.Insert(each.Spec.ClusterIP)
		ports.Insert(each.Spec.Ports[0].NodePort)
	}
	g.Expect(ips).To(HaveLen(30))
	g.Expect(ports).To(HaveLen(30))
	_, err = red.CoreV1().Services("team").Create(t.Context(), nodePort("more", "", 0), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("range is full")))
	_, err = blue.CoreV1().Services("team").Create(t.Context(), nodePort("web", "", 0), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestNodePortsExhausted takes all node ports of a tenant.
func TestNodePortsExhausted(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	_, blue := serve(t, c, chain.Spec{Name: "blue"}, "10.96.0.0/16")
	const all = 2768
	for from := int32(0); from < all; from += all / 4 {
		many := nodePort(fmt.Sprintf("many-%d", from), "", 0)
		many.Spec.Ports = nil
		for port := range int32(all / 4) {
			many.Spec.Ports = append(many.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", port), Port: port + 1})
		}
		_, err := red.CoreV1().Services("team").Create(t.Context(), many, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err := red.CoreV1().Services("team").Create(t.Context(), nodePort("more", "", 0), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("range is full")))
	_, err = blue.CoreV1().Services("team").Create(t.Context(), nodePort("web", "", 30000), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestServicesOfRestart: allocations outlive the apiserver, and what a crash or
// the tenant has broken is repaired before anything else is allocated.
func TestServicesOfRestart(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c, all := newChain(t)
	first, client := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	services := client.CoreV1().Services("team")
	_, err := services.Create(ctx, nodePort("web", "10.96.0.10", 30080), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.Remove(first)
	_, err = services.Create(ctx, nodePort("removed", "", 0), metav1.CreateOptions{})
	g.Expect(err).To(HaveOccurred())
	for _, lost := range []string{"ranges/servicenodeports", "ipaddresses/10.96.0.10"} {
		deleted, err := all.Delete(ctx, "/controlplanes/red/"+lost)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(deleted.Deleted).To(Equal(int64(1)), lost)
	}

	_, client = serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	services = client.CoreV1().Services("team")
	_, err = services.Create(ctx, nodePort("other", "10.96.0.10", 0), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("provided IP is already allocated")))
	_, err = services.Create(ctx, nodePort("other", "", 30080), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("provided port is already allocated")))
	g.Expect(services.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
	_, err = services.Create(ctx, nodePort("other", "10.96.0.10", 30080), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	expectKeysOf(ctx, g, all, "red")
}

// TestServicesAfterAFailedRepair: upstream's repair ends for good after an
// error. The first write of a Service waited for it in vain, and failed.
func TestServicesAfterAFailedRepair(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	first, client := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	_, err := client.CoreV1().Services("team").Create(t.Context(), nodePort("web", "10.96.0.10", 0), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.Remove(first)
	_, err = all.Delete(t.Context(), "/controlplanes/red/ipaddresses/10.96.0.10")
	g.Expect(err).NotTo(HaveOccurred())

	var repairs atomic.Int32
	_, client = serve(t, c, chain.Spec{Name: "red", Filter: func(inner http.Handler, _ *genericapiserver.Config) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/ipaddresses") && repairs.Add(1) <= 2 {
				http.Error(w, "fails twice", http.StatusInternalServerError)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}}, "10.96.0.0/16")
	begun := time.Now()
	_, err = client.CoreV1().Services("team").Create(t.Context(), nodePort("other", "", 0), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(time.Since(begun)).To(BeNumerically("<", 15*time.Second))
	_, err = client.NetworkingV1().IPAddresses().Get(t.Context(), "10.96.0.10", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "it is repaired before anything is allocated")
}

// TestDeletedServiceCIDR: a tenant that deletes the range of its ClusterIPs
// gets it again, and others notice nothing.
func TestDeletedServiceCIDR(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	tenant, red := add(t, c, "red")
	other, blue := add(t, c, "blue")
	for _, each := range []*chain.Tenant{tenant, other} {
		g.Expect(c.Bootstrap(t.Context(), each)).To(Succeed())
	}
	ranges := red.NetworkingV1().ServiceCIDRs()
	before, err := ranges.Get(t.Context(), "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ranges.Delete(t.Context(), "kubernetes", metav1.DeleteOptions{})).To(Succeed())
	services := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), nodePort("web", "", 0), metav1.CreateOptions{})
		return err
	}
	g.Expect(services(blue)).To(Succeed())
	g.Eventually(func(g Gomega) {
		again, err := ranges.Get(t.Context(), "kubernetes", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.UID).NotTo(Equal(before.UID))
		g.Expect(again.Spec.CIDRs).To(Equal(before.Spec.CIDRs))
	}, later).Should(Succeed())
	g.Eventually(services, later).WithArguments(red).Should(Succeed())
}

// TestServicesWithoutARange: while the range of ClusterIPs is being deleted, none
// is allocated, and Services can be deleted. Its deletion waits for that.
func TestServicesWithoutARange(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	first, client := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	services, ranges := client.CoreV1().Services("team"), client.NetworkingV1().ServiceCIDRs()
	_, err := services.Create(t.Context(), nodePort("web", "", 0), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	found, err := ranges.Get(t.Context(), "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	found.Finalizers = append(found.Finalizers, "example.com/in-use")
	_, err = ranges.Update(t.Context(), found, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ranges.Delete(t.Context(), "kubernetes", metav1.DeleteOptions{})).To(Succeed())
	c.Remove(first)

	_, client = serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	services = client.CoreV1().Services("team")
	begun := time.Now()
	_, err = services.Create(t.Context(), nodePort("other", "", 0), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("range is full"))) // as stock
	g.Expect(services.Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(time.Since(begun)).To(BeNumerically("<", 15*time.Second))
}

// expectKeysOf expects that all keys are of these tenants.
func expectKeysOf(ctx context.Context, g Gomega, all *clientv3.Client, tenants ...string) {
	written, err := all.Get(ctx, "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written.Kvs).NotTo(BeEmpty())
	prefixes := make([]gomegatypes.GomegaMatcher, 0, len(tenants))
	for _, tenant := range tenants {
		prefixes = append(prefixes, HavePrefix("/controlplanes/"+tenant+"/"))
	}
	for _, each := range written.Kvs {
		g.Expect(string(each.Key)).To(Or(prefixes...))
	}
}

// TestEndsAllocators: the end of a tenant does not wait for repairs.
func TestEndsAllocators(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	tenant, client := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	before := runtime.NumGoroutine()
	_, err := client.CoreV1().Services("team").Create(t.Context(), nodePort("web", "", 0), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(runtime.NumGoroutine()).To(BeNumerically(">", before+10))
	begun := time.Now()
	c.Remove(tenant)
	g.Expect(time.Since(begun)).To(BeNumerically("<", 15*time.Second))
	g.Eventually(runtime.NumGoroutine, later).Should(BeNumerically("<=", before+2))
}

// TestServicesOfTwoServers: an apiserver that ends its last requests and the
// next one of the same tenant never allocate the same.
func TestServicesOfTwoServers(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, old := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/26")
	_, next := serve(t, secondChain(t.Context(), t), chain.Spec{Name: "red"}, "10.96.0.0/26")
	var made sync.WaitGroup
	for i := range 60 {
		client := []kubernetes.Interface{old, next}[i%2]
		made.Go(func() {
			port := int32(30000 + i/4) // each is wanted by two of each apiserver
			_, _ = client.CoreV1().Services("team").Create(t.Context(), nodePort(fmt.Sprintf("web-%d", i), "", port), metav1.CreateOptions{})
		})
	}
	made.Wait()
	list, err := next.CoreV1().Services("team").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(15))
	ips, ports := sets.New[string](), sets.New[int32]()
	for _, each := range list.Items {
		ips.Insert(each.Spec.ClusterIP)
		ports.Insert(each.Spec.Ports[0].NodePort)
	}
	g.Expect(ips).To(HaveLen(15))
	g.Expect(ports).To(HaveLen(15))
}

// TestNodePortsAreKubernetes: the record of node ports is that of a
// kube-apiserver, which another isolation of the tenant reads.
func TestNodePortsAreKubernetes(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	_, client := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	_, err := client.CoreV1().Services("team").Create(t.Context(), nodePort("web", "", 30005), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	stored, err := all.Get(t.Context(), "/controlplanes/red/ranges/servicenodeports")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.Kvs).To(HaveLen(1))
	record := &corev1.RangeAllocation{}
	_, _, err = scheme.Codecs.UniversalDeserializer().Decode(stored.Kvs[0].Value, nil, record)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.Range).To(Equal("30000-32767"))
	g.Expect(record.Data).To(Equal([]byte{1 << 5}))

	// A port that no Service has, as after a crash, is not allocated.
	record.Data = []byte{1<<5 | 1}
	var encoded bytes.Buffer
	g.Expect(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(record, &encoded)).To(Succeed())
	_, err = all.Put(t.Context(), "/controlplanes/red/ranges/servicenodeports", encoded.String())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Services("team").Create(t.Context(), nodePort("other", "", 30000), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("provided port is already allocated")))
}
