package integration

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	gomegatypes "github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// haveHealth succeeds for a store whose health has a reason.
func haveHealth(reason string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ConsistOf(And(
		HaveField("Type", tenancyv1alpha1.ConditionStoreHealthy), HaveField("Reason", reason),
	)))
}

// inPod returns a client that connects as pods do: to the address of the control
// plane for pods, of which it learns after a while, without a server name.
func inPod(ctx context.Context, super *kit.Site, of *kit.SiteTenant) kubernetes.Interface {
	GinkgoHelper()
	const behind = 2 * time.Second
	key := client.ObjectKeyFromObject(of.Plane) // which a spec reads again meanwhile
	var known atomic.Pointer[string]
	learn := func() {
		plane := &tenancyv1alpha1.HostedControlPlane{}
		if super.Client.Get(ctx, key, plane) == nil {
			known.Store(new(strings.TrimPrefix(plane.Status.PodEndpoint, "https://")))
		}
	}
	learn()
	learning, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { wait.UntilWithContext(learning, func(context.Context) { learn() }, behind) })
	DeferCleanup(func() {
		stop()
		work.Wait()
	})
	config := rest.CopyConfig(of.Config)
	config.Host, config.ServerName = "https://kubernetes.default.svc", ""
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, *known.Load())
	}
	return must(kubernetes.NewForConfig(config))
}

var _ = Describe("Hosts of an installation", Ordered, func() {
	const later = 6 * kit.Soon
	var (
		super    *kit.Site
		replicas = map[string]*kit.HostReplica{}
		made     *kit.SiteTenant
		red      *tenancyv1alpha1.VirtualCluster
		plane    *tenancyv1alpha1.HostedControlPlane
		tenants  kubernetes.Interface
	)

	start := func(ctx context.Context, name string) {
		GinkgoHelper()
		replicas[name] = super.StartReplica(ctx, name, "--pod-address="+kit.MachineAddress())
	}
	// leave takes a replica out of the service, as the super cluster does with a
	// pod that is deleted.
	leave := func(name string) *kit.HostReplica {
		GinkgoHelper()
		leaving := replicas[name]
		Expect(leaving).NotTo(BeNil(), name)
		delete(replicas, name)
		super.Service.Remove(leaving.Address)
		return leaving
	}
	servedBy := func(ctx context.Context) func() (string, error) {
		return func() (string, error) {
			err := super.Client.Get(ctx, client.ObjectKeyFromObject(plane), plane)
			return plane.Status.Host, err
		}
	}

	BeforeAll(func(ctx SpecContext) {
		super = kit.StartSite(ctx)
		start(ctx, "host-a")
		made = super.NewTenant(ctx)
		red, plane = made.VC, made.Plane
		made.Config.Timeout = kit.Soon
		tenants = must(kubernetes.NewForConfig(made.Config))
	}, NodeTimeout(kit.Longest))

	It("run a control plane with its keys in Secrets of its root namespace", func(ctx SpecContext) {
		Expect(tenants.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})).NotTo(BeNil())
		Expect(red.Status.Endpoint).To(Equal("https://" + super.Service.Address))
		keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneKeys}}
		Expect(kit.Get(ctx, super.Client, keys)).To(Succeed())
		Expect(keys.Data).To(And(HaveKey("ca.pem"), HaveKey("sa.key")))
		Expect(servedBy(ctx)()).To(Equal("host-a"))
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		Eventually(kit.Read(ctx, super.Client, store)).Should(haveHealth(tenancyv1alpha1.ReasonHealthy))
	})

	It("have rights on the Secrets of its root namespace, and on no others", func(ctx SpecContext) {
		account, err := clientcmd.BuildConfigFromFlags("", super.File("host.kubeconfig"))
		Expect(err).NotTo(HaveOccurred())
		host, err := local.NewClient(account)
		Expect(err).NotTo(HaveOccurred())
		for right, want := range map[authorizationv1.ResourceAttributes]bool{
			{Verb: "get", Resource: "secrets", Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneKeys}: true,
			{Verb: "get", Resource: "secrets", Namespace: plane.Namespace, Name: names.AdminKubeconfigSecret}:            false,
			{Verb: "list", Resource: "secrets", Namespace: plane.Namespace}:                                              false,
			{Verb: "get", Resource: "secrets", Namespace: plane.Namespace + "-default", Name: "any"}:                     false,
			{Verb: "create", Resource: "secrets", Namespace: plane.Namespace + "-default"}:                               false,
			{Verb: "get", Resource: "secrets", Namespace: "kube-system", Name: tenancyv1alpha1.HostedControlPlaneKeys}:   false,
			{Verb: "create", Resource: "pods", Namespace: rbac.Namespace}:                                                false,
			{Verb: "patch", Group: "tenancy.x-k8s.io", Resource: "virtualclusters", Namespace: red.Namespace}:            false,
		} {
			Expect(local.Allowed(ctx, host, right)).To(Equal(want), "%+v", right)
		}
	})

	It("hand it over, while a client and a pod that list ten times a second see no failure", func(ctx SpecContext) {
		listing, ofPod := kit.StartLister(ctx, tenants), kit.StartLister(ctx, inPod(ctx, super, made))
		DeferCleanup(listing.Stop)
		DeferCleanup(ofPod.Stop)
		start(ctx, "host-b")
		start(ctx, "host-c")
		for range 3 {
			from, err := servedBy(ctx)()
			Expect(err).NotTo(HaveOccurred())
			leaving := leave(from)
			leaving.Terminate()
			Eventually(leaving).WithTimeout(later).Should(gexec.Exit(0))
			Eventually(servedBy(ctx)).Should(Not(Equal(from)))
			before := listing.Lists()
			Eventually(listing.Lists).Should(BeNumerically(">", before+5))
			start(ctx, from+"-again")
		}
		listing.Stop()
		ofPod.Stop()
		AddReportEntry("hand-over: lists, longest gap, also of the pod", []any{
			listing.Lists(), listing.Gap().String(), ofPod.Lists(), ofPod.Gap().String(),
		})
		Expect(listing.Failures()).To(BeEmpty())
		Expect(ofPod.Failures()).To(BeEmpty())
	}, SpecTimeout(kit.Longest))

	It("serve it again when the replica that serves it is killed", func(ctx SpecContext) {
		from := ""
		Eventually(func() error { // also the replica that has come last
			was := from
			var err error
			if from, err = servedBy(ctx)(); err == nil && from != was {
				err = errors.New("it is being handed over")
			}
			return err
		}).WithContext(ctx).WithPolling(5 * time.Second).Should(Succeed())
		listing := kit.StartLister(ctx, tenants)
		DeferCleanup(listing.Stop)
		Eventually(listing.Lists).Should(BeNumerically(">", 3))
		leave(from).Kill().Wait(kit.Soon)
		before := listing.Lists()
		Eventually(listing.Lists).WithTimeout(later).Should(BeNumerically(">", before+5))
		Eventually(servedBy(ctx)).ShouldNot(Equal(from))
		listing.Stop()
		AddReportEntry("killed: longest gap", listing.Gap().String())
	}, SpecTimeout(kit.Longest))

	It("report a store that does not respond, and continue when it does", func(ctx SpecContext) {
		super.Store.Terminate().Wait(kit.Soon)
		store := &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		Eventually(kit.Read(ctx, super.Client, store)).WithTimeout(later).Should(haveHealth(tenancyv1alpha1.ReasonStoreUnreachable))
		super.StartStore()
		Eventually(func() error {
			_, err := tenants.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return err
		}).WithTimeout(later).Should(Succeed())
		Eventually(kit.Read(ctx, super.Client, store)).WithTimeout(later).Should(haveHealth(tenancyv1alpha1.ReasonHealthy))
		Eventually(kit.Read(ctx, super.Client, red)).WithTimeout(later).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	}, SpecTimeout(kit.Longest))

	It("keep a control plane whose object and keys are deleted by hand", func(ctx SpecContext) {
		keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plane.Namespace, Name: tenancyv1alpha1.HostedControlPlaneKeys}}
		Expect(super.Client.Delete(ctx, keys)).To(Succeed())
		Expect(super.Client.Delete(ctx, plane)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, plane)).Should(HaveField("DeletionTimestamp", Not(BeNil())))
		Consistently(func() error {
			_, err := tenants.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return err
		}, "3s").Should(Succeed())
		Expect(kit.Get(ctx, super.Client, keys)).To(Succeed())
		Expect(kit.Get(ctx, super.Client, red)).To(Succeed())
		Expect(red).To(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	}, SpecTimeout(kit.Longest))

	It("delete all of it", func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, red)).To(Succeed())
		Eventually(func() error {
			return super.Client.Get(ctx, client.ObjectKeyFromObject(red), red)
		}).WithTimeout(later).Should(MatchError(ContainSubstring("not found")))
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(plane.Namespace))
		for name, each := range replicas {
			each.Terminate()
			Eventually(each).WithTimeout(later).Should(gexec.Exit(0), name)
			Expect(strings.Contains(string(each.Out.Contents()), "PRIVATE KEY")).To(BeFalse(), "a key is in the log")
		}
	}, SpecTimeout(kit.Longest))
})
