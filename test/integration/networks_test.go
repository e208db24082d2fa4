package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// networksName is the name of the CRD of networks, and of its policy.
const networksName = "networks.arktos.futurewei.com"

// network returns a network of a type.
func network(name, kind string, change ...func(*networkv1.Network)) *networkv1.Network {
	n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkv1.NetworkSpec{Type: kind}}
	for _, f := range change {
		f(n)
	}
	return n
}

// withVPC sets the name by which a provider knows a network.
func withVPC(id string) func(*networkv1.Network) {
	return func(n *networkv1.Network) { n.Spec.VPCID = id }
}

// inPhase matches a network in a phase, with a reason.
func inPhase(phase networkv1.Phase, reason string) gomegatypes.GomegaMatcher {
	return And(
		HaveField("Status.Phase", phase),
		HaveField("Status.Conditions", ContainElement(And(HaveField("Type", networkv1.ConditionReady), HaveField("Reason", reason)))))
}

// isReady matches a network that is ready, and has the finalizer.
func isReady() gomegatypes.GomegaMatcher {
	return And(inPhase(networkv1.PhaseReady, networkv1.ReasonReady), HaveField("Finalizers", ConsistOf(networkv1.Finalizer)))
}

// onNetwork puts a pod on a network.
func onNetwork(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, networkv1.Label, name) }
}

// copiedTo matches a copy with the labels of its tenant and of a network.
func copiedTo(t *local.Tenant, network string) gomegatypes.GomegaMatcher {
	return HaveField("Labels", And(
		HaveKeyWithValue(networkv1.Label, network), HaveKeyWithValue(names.VCName, t.VC.Name), HaveKeyWithValue(names.VCNamespace, t.VC.Namespace)))
}

// createNetwork creates a network as soon as the tenant serves networks.
func createNetwork(ctx context.Context, t *local.Tenant, n *networkv1.Network) {
	GinkgoHelper()
	Eventually(t.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
}

var _ = Describe("Networks", Ordered, func() {
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account, func(o *app.Options) { o.Networks, o.Patrol = true, 3*time.Second })
		red, blue = tenant(ctx), tenant(ctx, kit.WithIsolation(tenancyv1alpha1.IsolationDedicated))
	})

	It("are in every tenant, with a default one", func(ctx SpecContext) {
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(kit.Read(ctx, t.Client, network("default", ""))).Should(And(isReady(), HaveField("Spec.Type", networkv1.TypeFlat)))
		}
		By("making the default one again when it was deleted")
		was := network("default", "")
		Expect(kit.Get(ctx, red.Client, was)).To(Succeed())
		Expect(red.Client.Delete(ctx, was)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, network("default", ""))).Should(And(isReady(), HaveField("UID", Not(Equal(was.UID)))))
	})

	It("take the samples with kubectl", func(ctx SpecContext) {
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "red.kubeconfig")
		secret := &corev1.Secret{}
		Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: red.Key(), Name: names.AdminKubeconfigSecret}, secret)).To(Succeed())
		Expect(os.WriteFile(kubeconfig, secret.Data[names.AdminKubeconfigKey], 0o600)).To(Succeed())
		kubectl := func(args ...string) string {
			GinkgoHelper()
			command := exec.CommandContext(ctx, os.Getenv(kubectlBinary), append([]string{"--kubeconfig", kubeconfig}, args...)...)
			out, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
			return string(out)
		}
		// The pods of the samples need it.
		kit.ShouldExist(ctx, red.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})
		kubectl("apply", "--filename", "../../config/samples/networks")
		Eventually(kit.Read(ctx, red.Client, network("my-network", ""))).Should(isReady())
		Eventually(kit.Read(ctx, red.Client, network("vpc-1", ""))).Should(inPhase(networkv1.PhasePending, networkv1.ReasonNoProvider))
		Eventually(kit.Read(ctx, red.Client, network("mizar-1", ""))).Should(inPhase(networkv1.PhasePending, networkv1.ReasonNoProvider))
		Eventually(kit.Read(ctx, red.Client, network("ranges", ""))).Should(
			inPhase(networkv1.PhaseFailed, networkv1.ReasonServiceRangesOutside))
		for name, of := range map[string]string{"nginx-default": "default", "nginx": "my-network"} {
			Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Pod("default", name)))).Should(copiedTo(red, of))
		}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-service"}}
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service))).Should(copiedTo(red, "my-network"))
		for _, short := range []string{"net", "ne"} {
			Expect(kubectl("get", short)).To(And(
				MatchRegexp(`NAME\s+TYPE\s+VPC\s+PHASE\s+AGE`), MatchRegexp(`vpc-1\s+vpc\s+vpc-1a2b3c4d\s+Pending`), MatchRegexp(`default\s+flat\s+Ready`)))
		}
	})

	It("hold back pods and Services of a network that does not exist, until it does", func(ctx SpecContext) {
		pod := kit.Pod("default", "early", onNetwork("later"))
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "early", Labels: map[string]string{networkv1.Label: "later"}},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		kit.Create(ctx, red.Client, pod, service)
		Eventually(kit.Events(ctx, red, pod, "SyncBlocked")).WithTimeout(2 * kit.Soon).
			Should(ConsistOf("blocked on Network later, which does not exist or is not synced yet"))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, pod))

		By("not taking the network of another tenant")
		createNetwork(ctx, blue, network("later", networkv1.TypeFlat))
		Eventually(kit.Read(ctx, blue.Client, network("later", ""))).Should(isReady())
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, pod))

		createNetwork(ctx, red, network("later", networkv1.TypeFlat))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, pod))).Should(copiedTo(red, "later"))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service))).Should(copiedTo(red, "later"))
		Eventually(kit.Read(ctx, red.Client, pod)).Should(HaveField("Spec.NodeName", Not(BeEmpty())))
	})

	It("have Services that lead to pods of their own network alone", func(ctx SpecContext) {
		createNetwork(ctx, red, network("served", networkv1.TypeFlat))
		within := kit.Pod("default", "within", onNetwork("served"))
		beyond := kit.Pod("default", "beyond")
		for _, p := range []*corev1.Pod{within, beyond} {
			p.Labels = labels.Merge(p.Labels, map[string]string{"app": "served"})
		}
		serving := func(name string, selector map[string]string) *corev1.Service {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{networkv1.Label: "served"}},
				Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: selector, Ports: []corev1.ServicePort{{Port: 80}}},
			}
		}
		service := serving("serving", map[string]string{"app": "served"})
		elsewhere := serving("elsewhere", map[string]string{networkv1.Label: "default"})
		kit.Create(ctx, red.Client, within, beyond, service, elsewhere)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service))).Should(
			HaveField("Spec.Selector", Equal(map[string]string{"app": "served", networkv1.Label: "served"})))
		Eventually(kit.Events(ctx, red, elsewhere, "SyncRejected")).WithTimeout(2 * kit.Soon).Should(ConsistOf(
			ContainSubstring(`spec.selector selects pods of network "default", and the Service is in network "served"`)))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, elsewhere))

		By("following a Service to another network")
		kit.Edit(ctx, red.Client, service, func(s *corev1.Service) { s.Labels[networkv1.Label] = "default" })
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service))).Should(And(
			copiedTo(red, "default"), HaveField("Spec.Selector", HaveKeyWithValue(networkv1.Label, "default"))))
	})

	It("hold back pods of a network that is not ready, with its reason", func(ctx SpecContext) {
		createNetwork(ctx, red, network("no-provider", networkv1.TypeVPC, withVPC("vpc-7")))
		pod := kit.Pod("default", "unready", onNetwork("no-provider"))
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Events(ctx, red, pod, "SyncWaiting")).WithTimeout(2 * kit.Soon).Should(ConsistOf(
			"waiting for Network no-provider to be ready: no provider offers networks of type vpc; " +
				"ask an admin of the platform for the types that are offered"))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, pod))).To(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("keep a pod, whatever its label is later", func(ctx SpecContext) {
		createNetwork(ctx, red, network("stay", networkv1.TypeFlat))
		pod := kit.Pod("default", "stays", onNetwork("stay"))
		kit.Create(ctx, red.Client, pod)
		copied := kit.SuperOf(red, pod)
		Eventually(kit.Read(ctx, super.Client, copied)).Should(copiedTo(red, "stay"))
		move := func() error {
			moved := pod.DeepCopy()
			moved.Labels[networkv1.Label] = "default"
			return red.Client.Patch(ctx, moved, client.MergeFrom(pod))
		}
		Eventually(move).Should(MatchError(ContainSubstring("a pod stays in its network")))

		By("moving the label without the policy")
		Eventually(func() error { // it may be back before the apiserver notices that it is gone
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: networksName}}
			return errors.Join(client.IgnoreNotFound(red.Client.Delete(ctx, binding)), move())
		}).WithPolling(5 * time.Millisecond).Should(Succeed())
		Consistently(kit.Read(ctx, super.Client, copied)).Should(copiedTo(red, "stay"))
		kit.ShouldExist(ctx, red.Client, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: networksName}})
	})

	It("have a status that only the platform writes, and an API that it keeps", func(ctx SpecContext) {
		claim := func(t *local.Tenant) error {
			n := network("default", "")
			if err := kit.Get(ctx, t.Client, n); err != nil {
				return err
			}
			n.Status.DNSServiceIP = "192.0.2.1"
			return t.Client.Status().Update(ctx, n)
		}
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(kit.Read(ctx, t.Client, network("default", ""))).Should(isReady())
			Eventually(claim).WithArguments(t).Should(MatchError(ContainSubstring("only the platform writes the status of a network")))
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: networksName}}
		Eventually(red.Client.Delete).WithContext(ctx).WithArguments(crd).Should(MatchError(ContainSubstring("the platform keeps the API of networks")))

		By("reverting what the tenant edits")
		Expect(kit.Get(ctx, red.Client, crd)).To(Succeed())
		want := crd.Spec.DeepCopy()
		kit.Edit(ctx, red.Client, crd, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Names.ShortNames = []string{"mine"}
			d.Spec.Versions[0].Subresources = nil
		})
		Eventually(kit.Read(ctx, red.Client, crd)).Should(HaveField("Spec", Equal(*want)))
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: networksName}}
		kit.Edit(ctx, red.Client, policy, func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Expression = "true" })
		Eventually(kit.Read(ctx, red.Client, policy)).Should(
			HaveField("Spec.Validations", ContainElement(HaveField("Expression", ContainSubstring("request.userInfo.username")))))
		Eventually(claim).WithArguments(red).Should(MatchError(ContainSubstring("only the platform writes the status of a network")))
	})

	DescribeTable("reject", func(ctx SpecContext, n *networkv1.Network, because string) {
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(n).Should(MatchError(ContainSubstring(because)))
	},
		Entry("a network without a type", network("bad", ""), "spec.type"),
		Entry("a name that is no value of a label", network("bad.name", networkv1.TypeFlat), "must be a DNS label"),
		Entry("a vpc without an ID", network("bad", networkv1.TypeVPC), "needs vpcID"),
		Entry("a flat network with an ID", network("bad", networkv1.TypeFlat, withVPC("vpc-1")), "vpcID is for other types"),
		Entry("a range that is none", network("bad", "mizar", withRanges("10.0.0.0")), "CIDR notation"),
		Entry("a range with host bits", network("bad", "mizar", withRanges("10.0.0.1/16")), "host bits"),
		Entry("ranges that overlap", network("bad", "mizar", withRanges("10.0.0.0/16", "10.0.1.0/24")), "must not overlap"),
		Entry("the same range twice", network("bad", "mizar", withRanges("10.0.0.0/16", "10.0.0.0/16")), "must not overlap"),
		Entry("a flat network with addresses of a provider", network("bad", networkv1.TypeFlat, func(n *networkv1.Network) {
			n.Spec.Service = &networkv1.ServiceSpec{IPAM: networkv1.IPAMExternal}
		}), "service.ipam External is for other types"),
	)

	It("are Terminating while they have pods", func(ctx SpecContext) {
		n := network("leaving", networkv1.TypeFlat)
		createNetwork(ctx, red, n)
		pods := []*corev1.Pod{kit.Pod("default", "leaving-1", onNetwork("leaving")), kit.Pod("default", "leaving-2", onNetwork("leaving"))}
		for _, pod := range pods {
			kit.Create(ctx, red.Client, pod)
			Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, pod))).Should(copiedTo(red, "leaving"))
		}
		Expect(red.Client.Delete(ctx, n)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhaseTerminating, networkv1.ReasonPodsLeft))

		By("taking no further pods")
		late := kit.Pod("default", "leaving-late", onNetwork("leaving"))
		kit.Create(ctx, red.Client, late)
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, late))

		By("outliving the syncer, and all pods but the last")
		restartSyncer()
		Expect(red.Client.Delete(ctx, pods[0])).To(Succeed())
		Consistently(kit.Read(ctx, red.Client, n)).Should(HaveField("Finalizers", ConsistOf(networkv1.Finalizer)))
		Expect(red.Client.Delete(ctx, pods[1])).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, n)

		By("taking the late pod in a network of that name")
		createNetwork(ctx, red, network("leaving", networkv1.TypeFlat))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, late))).Should(copiedTo(red, "leaving"))
	})

	It("have one default network at a time, although a tenant has two that were one", func(ctx SpecContext) {
		old, chosen := kit.Pod("default", "before"), kit.Pod("default", "chooses", onNetwork("default"))
		kit.Create(ctx, red.Client, old)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, old))).Should(copiedTo(red, "default"))
		own := network("main", networkv1.TypeFlat)
		createNetwork(ctx, red, own)

		template := filepath.Join(GinkgoT().TempDir(), "network.json")
		Expect(os.WriteFile(template, []byte(`{"metadata": {"name": "main"}, "spec": {"type": "flat"}}`), 0o600)).To(Succeed())
		useSyncer(account, func(o *app.Options) { o.Networks, o.Patrol, o.DefaultNetworkTemplate = true, 3*time.Second, template })
		for _, t := range []*local.Tenant{red, blue} {
			for _, name := range []string{"main", "default"} {
				Eventually(kit.Read(ctx, t.Client, network(name, ""))).Should(isReady())
			}
		}
		Expect(kit.Read(ctx, red.Client, own)()).To(HaveField("UID", own.UID), "it is the tenant's own")
		after := kit.Pod("default", "after")
		kit.Create(ctx, red.Client, after)
		kit.Create(ctx, red.Client, chosen)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, after))).Should(copiedTo(red, "main"))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, chosen))).Should(copiedTo(red, "default"))
		Expect(kit.Read(ctx, super.Client, kit.SuperOf(red, old))()).To(copiedTo(red, "default"))
	})
})

// withRanges sets the ranges of Service addresses.
func withRanges(ranges ...networkv1.CIDR) func(*networkv1.Network) {
	return func(n *networkv1.Network) { n.Spec.Service = &networkv1.ServiceSpec{CIDRs: ranges} }
}
