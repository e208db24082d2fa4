package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// One DNS for all tenants and a CoreDNS of the tenant's own have the same answers.
var _ = Describe("The names that a pod finds", func() {
	Describe("in a DNS that tenants share", Ordered, ContinueOnFailure, func() { namesFor(func() *local.Tenant { return red }) })
	Describe("in a CoreDNS of its tenant's own", Ordered, ContinueOnFailure, func() { namesFor(func() *local.Tenant { return green }) })
})

// namesFor has the specs of a tenant's names.
func namesFor(tenant func() *local.Tenant) {
	var (
		t     *local.Tenant
		ns    string
		as    *kubectl
		front *corev1.Service
		// first has a name in a domain, second one that it chose as its host's,
		// and own uses only the DNS server that it names.
		first, second, own *corev1.Pod
	)

	BeforeAll(func(ctx SpecContext) {
		t = tenant()
		ns, as = newNamespace(ctx, t), kubectlOf(ctx, t)
		set := headlessSet(ns, "db")
		front = service(ns, "db")
		front.Name = "web"
		elsewhere := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "elsewhere"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web." + ns + ".svc.cluster.local"},
		}
		create(ctx, t, headless(ns, "db"), set, front, elsewhere, headless(ns, "crew"))

		first = member(ns, "first")
		first.Spec.Hostname = "captain"
		first.Spec.DNSConfig = &corev1.PodDNSConfig{
			Searches: []string{"corp.example"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "edns0"}},
		}
		second = member(ns, "second-in-command") // too long with the namespace of the super cluster
		second.Spec.SetHostnameAsFQDN = new(true)
		own = pod(ns, "own", busybox, "sleep", "3600")
		own.Spec.DNSPolicy = corev1.DNSNone
		own.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.53"}, Searches: []string{"corp.example"}}
		create(ctx, t, first, second, own)
		for _, p := range []**corev1.Pod{&first, &second, &own} {
			*p = shouldBeReady(ctx, t, *p)
		}
		Eventually(read(t, set)).WithContext(ctx).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(1)))
	})

	// asks looks a name up for the first pod; what a server does not know yet,
	// it will in a moment.
	asks := func(name string) AsyncAssertion {
		return Eventually(as.in).WithArguments(first, "nslookup", name)
	}

	It("are its tenant's, also from another namespace", Label(smoke), func(ctx SpecContext) {
		shouldReach(ctx, t, ns, "web:80")
		shouldReach(ctx, t, newNamespace(ctx, t), fmt.Sprintf("web.%s.svc.cluster.local:80", ns))
	})

	It("are those of the pods of a StatefulSet", func(ctx SpecContext) {
		shouldReach(ctx, t, ns, fmt.Sprintf("db-0.db:%d", port))
	})

	It("are those of Services elsewhere", func(ctx SpecContext) {
		shouldReach(ctx, t, ns, "elsewhere:80")
		asks("elsewhere." + ns + ".svc.cluster.local").WithContext(ctx).Should(
			And(ContainSubstring("canonical name = web.%s.svc.cluster.local", ns), ContainSubstring(front.Spec.ClusterIP)))
	})

	It("are those of pods with a domain, by the name of the host that they chose", func(ctx SpecContext) {
		asks("captain.crew." + ns + ".svc.cluster.local").WithContext(ctx).Should(ContainSubstring("Address: " + first.Status.PodIP + "\n"))
	})

	It("are found by their addresses", func(ctx SpecContext) {
		asks(front.Spec.ClusterIP).WithContext(ctx).Should(ContainSubstring("name = web.%s.svc.cluster.local\n", ns))
		asks(first.Status.PodIP).WithContext(ctx).Should(ContainSubstring("name = captain.crew.%s.svc.cluster.local\n", ns))
	})

	It("are those in the domains that it adds, by the rules that it sets", func(ctx SpecContext) {
		Expect(as.in(ctx, first, "cat", "/etc/resolv.conf")).To(And(
			HavePrefix("search %s.svc.cluster.local svc.cluster.local cluster.local corp.example\n", ns),
			MatchRegexp(`\noptions (ndots:2 edns0|edns0 ndots:2)\n$`))) // a kubelet writes them in any order
	})

	It("are those of its own server alone, if it wants no other", func(ctx SpecContext) {
		Expect(as.in(ctx, own, "cat", "/etc/resolv.conf")).To(Equal("search corp.example\nnameserver 192.0.2.53\n"))
	})

	It("are its own", func(ctx SpecContext) {
		Expect(as.in(ctx, first, "hostname")).To(Equal("captain\n"))
		Expect(as.in(ctx, second, "hostname")).To(Equal("second-in-command.crew." + ns + ".svc.cluster.local\n"))
	})

	It("are found by TCP", func(ctx SpecContext) {
		caller := pod(ns, "by-tcp", agnhost, "connect", "--timeout=2s", "web:80")
		caller.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "use-vc"}}}
		by := job(caller)
		create(ctx, t, by)
		Eventually(read(t, by)).WithContext(ctx).Should(HaveField("Status.Succeeded", BeEquivalentTo(1)))
	})

	It("are found by a pod whose policy allows nothing but the DNS", func(ctx SpecContext) {
		jailed := idle(ns, "jailed")
		jailed.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "timeout", Value: new("1")}, {Name: "attempts", Value: new("1")}}}
		policy := policyFor(jailed, networkingv1.PolicyTypeEgress)
		policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{toDNS()}
		create(ctx, t, jailed)
		shouldBeReady(ctx, t, jailed)
		Eventually(connect(ctx, t, jailed)).WithContext(ctx).WithArguments("web:80").Should(Succeed())
		create(ctx, t, policy)
		Eventually(connect(ctx, t, jailed)).WithContext(ctx).WithArguments("web:80").Should(beRefused, "at the address that it finds")
		policy.Spec.Egress = nil
		Expect(t.Client.Update(ctx, policy)).To(Succeed())
		Eventually(connect(ctx, t, jailed)).WithContext(ctx).WithArguments("web:80").Should(MatchError(ContainSubstring("DNS")))
	})

	It("are not those of another tenant", func(ctx SpecContext) {
		theirs, owner := service(newNamespace(ctx, blue), "theirs"), pod("default", "owner", busybox, "sleep", "3600")
		name := "theirs." + theirs.Namespace + ".svc.cluster.local"
		owner.Namespace = theirs.Namespace
		create(ctx, blue, theirs, owner)
		shouldBeReady(ctx, blue, owner)
		Eventually(kubectlOf(ctx, blue).in).WithContext(ctx).WithArguments(owner, "nslookup", name).Should(ContainSubstring(theirs.Spec.ClusterIP))

		found, err := as.in(ctx, first, "nslookup", name)
		Expect(err).To(HaveOccurred())
		Expect(found).To(ContainSubstring("NXDOMAIN"))
		server := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: names.DNSService}}
		Expect(get(ctx, blue, server)).To(Succeed())
		found, err = as.in(ctx, first, "nslookup", name, server.Spec.ClusterIP)
		Expect(err).To(HaveOccurred(), "their DNS answers their pods alone")
		Expect(found).NotTo(ContainSubstring(theirs.Spec.ClusterIP))
	})
}

// coreDNS is that of a tenant's own.
func coreDNS() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "coredns"}}
}

// toDNS allows egress to a cluster's DNS.
func toDNS() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem}},
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
		}},
		Ports: []networkingv1.NetworkPolicyPort{
			{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(53))},
			{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(53))},
		},
	}
}

var _ = Describe("A tenant's DNS", Ordered, ContinueOnFailure, func() {
	isReady := HaveField("Status.ReadyReplicas", BeEquivalentTo(1))

	It("is there again after it was deleted", func(ctx SpecContext) {
		dns := coreDNS()
		Eventually(get).WithContext(ctx).WithArguments(green, dns).Should(Succeed())
		was := dns.UID
		Expect(green.Client.Delete(ctx, dns)).To(Succeed())
		Eventually(read(green, dns)).WithContext(ctx).Should(And(HaveField("UID", Not(Equal(was))), isReady))
	})

	It("stays deleted while the tenant takes care of it", func(ctx SpecContext) {
		dns := coreDNS()
		Eventually(get).WithContext(ctx).WithArguments(green, dns).Should(Succeed())
		Expect(green.ChooseDNS(ctx, names.Unmanaged)).To(Succeed())
		Expect(green.Client.Delete(ctx, dns)).To(Succeed())
		lookAt(ctx, green)
		Consistently(get).WithContext(ctx).WithTimeout(soon/30).WithArguments(green, dns).Should(beNotFound)
		chooseDNS(ctx, green, names.Dedicated)
		Eventually(get).WithContext(ctx).WithTimeout(soon/30).WithArguments(green, dns).Should(Succeed(), "and had been reconciled as quickly before")
	})

	It("is one for all tenants until a tenant chooses another, and again after that", func(ctx SpecContext) {
		changing := newTenant(ctx, "changing")
		caller, dns := idle(newNamespace(ctx, changing), "caller"), coreDNS()
		create(ctx, changing, caller)
		shouldBeReady(ctx, changing, caller)
		shouldFind := func() {
			GinkgoHelper()
			Eventually(connect(ctx, changing, caller)).WithContext(ctx).WithArguments("kubernetes.default:443").Should(Succeed())
		}
		shouldFind()
		Expect(get(ctx, changing, dns)).To(beNotFound)
		chooseDNS(ctx, changing, names.Dedicated)
		Eventually(read(changing, dns)).WithContext(ctx).Should(isReady)
		shouldFind()
		chooseDNS(ctx, changing, "")
		Eventually(get).WithContext(ctx).WithArguments(changing, dns).Should(beNotFound)
		shouldFind()
	})

	It("answers a pod in the network of its node, if it is the tenant's own", func(ctx SpecContext) {
		trusted, err := super.NewTenant(ctx, &tenancyv1alpha1.VirtualCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "trusted"},
			Spec: tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{
				PodSecurity: tenancyv1alpha1.PodSecurityPrivileged, AllowHostNamespaces: true,
			}},
		})
		Expect(err).NotTo(HaveOccurred())
		chooseDNS(ctx, trusted, names.Dedicated)
		caller := pod(newNamespace(ctx, trusted), "caller", agnhost, "connect", "--timeout=2s", "kubernetes.default:443")
		caller.Spec.HostNetwork, caller.Spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
		by := job(caller)
		create(ctx, trusted, by)
		Eventually(read(trusted, by)).WithContext(ctx).Should(HaveField("Status.Succeeded", BeEquivalentTo(1)))
	})
})

// chooseDNS sets the annotation by which a tenant chooses its DNS.
func chooseDNS(ctx context.Context, t *local.Tenant, choice string) {
	GinkgoHelper()
	Expect(t.ChooseDNS(ctx, choice)).To(Succeed())
	lookAt(ctx, t)
}

// lookAt has vc-manager look at a tenant now instead of in half a minute.
func lookAt(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	vc := t.VC.DeepCopy()
	Expect(super.Client.Get(ctx, client.ObjectKeyFromObject(vc), vc)).To(Succeed())
	was := vc.DeepCopy()
	metav1.SetMetaDataAnnotation(&vc.ObjectMeta, "e2e/looked-at", vc.ResourceVersion)
	Expect(super.Client.Patch(ctx, vc, client.MergeFrom(was))).To(Succeed())
}

// member is a pod in the domain of a headless Service, the crew.
func member(ns, name string) *corev1.Pod {
	p := pod(ns, name, busybox, "sleep", "3600")
	p.Labels["app"], p.Spec.Subdomain = "crew", "crew"
	return p
}

// headless is a Service that is but a name for its pods.
func headless(ns, name string) *corev1.Service {
	s := service(ns, name)
	s.Spec.ClusterIP = corev1.ClusterIPNone
	return s
}

// headlessSet is a StatefulSet of one server in the domain of the headless
// Service of its name.
func headlessSet(ns, name string) *appsv1.StatefulSet {
	template := server(ns, name)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
}
