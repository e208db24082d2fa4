package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The names that a pod finds", Ordered, ContinueOnFailure, func() {
	var (
		ns    string
		as    *kubectl
		front *corev1.Service
		// first has a name in a domain, second one that it chose as its host's,
		// and own uses only the DNS server that it names.
		first, second, own *corev1.Pod
	)

	BeforeAll(func(ctx SpecContext) {
		ns, as = newNamespace(ctx, red), kubectlOf(ctx, red)
		set := headlessSet(ns, "db")
		front = service(ns, "db")
		front.Name = "web"
		elsewhere := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "elsewhere"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web." + ns + ".svc.cluster.local"},
		}
		create(ctx, red, headless(ns, "db"), set, front, elsewhere, headless(ns, "crew"))

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
		create(ctx, red, first, second, own)
		for _, p := range []**corev1.Pod{&first, &second, &own} {
			*p = shouldBeReady(ctx, red, *p)
		}
		Eventually(read(red, set)).WithContext(ctx).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(1)))
	})

	// asks looks a name up for the first pod; what a server does not know yet,
	// it will in a moment.
	asks := func(name string) AsyncAssertion {
		return Eventually(as.in).WithArguments(first, "nslookup", name)
	}

	It("are its tenant's, also from another namespace", Label(smoke), func(ctx SpecContext) {
		shouldReach(ctx, red, ns, "web:80")
		shouldReach(ctx, red, newNamespace(ctx, red), fmt.Sprintf("web.%s.svc.cluster.local:80", ns))
	})

	It("are those of the pods of a StatefulSet", func(ctx SpecContext) {
		shouldReach(ctx, red, ns, fmt.Sprintf("db-0.db:%d", port))
	})

	It("are those of Services elsewhere", func(ctx SpecContext) {
		shouldReach(ctx, red, ns, "elsewhere:80")
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
})

var _ = Describe("A tenant's DNS", func() {
	dnsOf := func() *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "coredns"}}
	}

	It("is there again after it was deleted", func(ctx SpecContext) {
		dns := dnsOf()
		Eventually(get).WithContext(ctx).WithArguments(red, dns).Should(Succeed())
		was := dns.UID
		Expect(red.Client.Delete(ctx, dns)).To(Succeed())
		Eventually(read(red, dns)).WithContext(ctx).Should(And(
			HaveField("UID", Not(Equal(was))), HaveField("Status.ReadyReplicas", BeEquivalentTo(1))))
	})

	It("stays deleted while the tenant takes care of it", func(ctx SpecContext) {
		dns := dnsOf()
		Eventually(get).WithContext(ctx).WithArguments(blue, dns).Should(Succeed())
		annotate(ctx, blue, names.Unmanaged)
		Expect(blue.Client.Delete(ctx, dns)).To(Succeed())
		lookAt(ctx, blue)
		Consistently(get).WithContext(ctx).WithTimeout(soon/30).WithArguments(blue, dns).Should(beNotFound)
		annotate(ctx, blue, "")
		lookAt(ctx, blue)
		Eventually(get).WithContext(ctx).WithTimeout(soon/30).WithArguments(blue, dns).Should(Succeed(), "and had been reconciled as quickly before")
	})
})

// annotate says in a tenant who takes care of its DNS.
func annotate(ctx context.Context, t *local.Tenant, who string) {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	Expect(get(ctx, t, ns)).To(Succeed())
	was := ns.DeepCopy()
	metav1.SetMetaDataAnnotation(&ns.ObjectMeta, names.DNS, who)
	Expect(t.Client.Patch(ctx, ns, client.MergeFrom(was))).To(Succeed())
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
