package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// outageVariable is the environment variable with the time for which the super
	// cluster does not respond, to measure with others than the default.
	outageVariable = "VC_OUTAGE"
	defaultOutage  = 12 * time.Second
	// expiry is the time after which a replica of vc-host has no valid lease.
	expiry = 6 * time.Second
	// takenOver bounds the time until another replica has taken over.
	takenOver = 6 * kit.Soon
)

// outageTime returns for how long the super cluster does not respond.
func outageTime() time.Duration {
	GinkgoHelper()
	if text := os.Getenv(outageVariable); text != "" {
		return must(time.ParseDuration(text))
	}
	return defaultOutage
}

// hostedTenant is a tenant whose control plane vc-host runs.
type hostedTenant struct {
	vc     *tenancyv1alpha1.VirtualCluster
	plane  *tenancyv1alpha1.HostedControlPlane
	config *rest.Config
	client kubernetes.Interface
	// listers list on a connection that they keep, and on a new one each time.
	listers []*kit.Lister

	mu sync.Mutex
	// pods has all pods that there were, by the name of their Deployment.
	pods map[string]map[types.UID]bool
}

// newHostedTenant creates a tenant, and lists in it until the end of the container
// of specs.
func newHostedTenant(ctx context.Context, super *kit.Site, name string) *hostedTenant {
	GinkgoHelper()
	made := super.NewTenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Name = name })
	t := &hostedTenant{vc: made.VC, plane: made.Plane, config: made.Config, pods: map[string]map[types.UID]bool{}}
	t.config.Timeout = kit.Soon
	t.client = must(kubernetes.NewForConfig(t.config))
	t.followPods(ctx)
	return t
}

// followPods records all pods of Deployments.
func (t *hostedTenant) followPods(ctx context.Context) {
	GinkgoHelper()
	factory := informers.NewSharedInformerFactoryWithOptions(t.client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		pod, _ := obj.(*corev1.Pod)
		of := pod.Labels["app.kubernetes.io/name"]
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.pods[of] == nil {
			t.pods[of] = map[types.UID]bool{}
		}
		t.pods[of][pod.UID] = true
	}})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
}

// podsOf returns how many pods a Deployment has had.
func (t *hostedTenant) podsOf(deployment string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pods[deployment])
}

// deploy creates a Deployment of three pods.
func (t *hostedTenant) deploy(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(t.tryDeploy(ctx, name)).To(Succeed())
}

func (t *hostedTenant) tryDeploy(ctx context.Context, name string) error {
	made := deployment(metav1.NamespaceDefault, name, 3)
	_, err := t.client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, made, metav1.CreateOptions{})
	return err
}

// status returns the status of a Deployment, which has no generation before a
// controller has seen it.
func (t *hostedTenant) status(ctx context.Context, name string) func() (appsv1.DeploymentStatus, error) {
	return func() (appsv1.DeploymentStatus, error) {
		found, err := t.client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return appsv1.DeploymentStatus{}, err
		}
		return found.Status, nil
	}
}

// list begins to list in the tenant, until the end of the spec.
func (t *hostedTenant) list(ctx context.Context) {
	GinkgoHelper()
	fresh := rest.CopyConfig(t.config)
	fresh.Wrap(func(next http.RoundTripper) http.RoundTripper { return closing{next} })
	t.listers = []*kit.Lister{
		kit.StartLister(ctx, must(kubernetes.NewForConfig(t.config))), kit.StartLister(ctx, must(kubernetes.NewForConfig(fresh))),
	}
	for _, lister := range t.listers {
		DeferCleanup(lister.Stop)
	}
}

// listed stops to list, and returns the failures and the longest gap.
func (t *hostedTenant) listed() (failures []error, gap time.Duration) {
	for _, lister := range t.listers {
		lister.Stop()
		failures, gap = append(failures, lister.Failures()...), max(gap, lister.Gap())
	}
	return failures, gap
}

// closing closes the connection of each request.
type closing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Close = true
	return c.next.RoundTrip(r)
}

var _ = Describe("Hosts whose super cluster does not respond", Ordered, func() {
	var (
		super    *kit.Site
		replicas = map[string]*kit.HostReplica{}
		proxies  = map[string]*local.Proxy{}
		tenants  []*hostedTenant
	)

	start := func(ctx context.Context, name string) {
		GinkgoHelper()
		proxies[name] = must(local.NewProxy(super.Config.Host))
		DeferCleanup(proxies[name].Close)
		account := must(super.HostConfig(ctx))
		file := super.File(name + ".kubeconfig")
		Expect(local.WriteKubeconfig(file, proxies[name].Config(account))).To(Succeed())
		replicas[name] = super.StartReplica(ctx, name, "--kubeconfig="+file)
	}
	host := func(ctx context.Context, t *hostedTenant) func() (string, error) {
		return func() (string, error) {
			err := super.Client.Get(ctx, client.ObjectKeyFromObject(t.plane), t.plane)
			return t.plane.Status.Host, err
		}
	}
	hosts := func(ctx context.Context) map[string]string {
		GinkgoHelper()
		found := map[string]string{}
		for _, t := range tenants {
			found[t.vc.Name] = must(host(ctx, t)())
		}
		return found
	}
	leases := func(ctx context.Context) []types.UID {
		GinkgoHelper()
		list := &coordinationv1.LeaseList{}
		Expect(super.Client.List(ctx, list, client.InNamespace(rbac.HostReplicasNamespace))).To(Succeed())
		var found []types.UID
		for i := range list.Items {
			found = append(found, list.Items[i].UID)
		}
		return found
	}
	// settled waits until the division of the tenants does not change any more.
	settled := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			before := hosts(ctx)
			g.Consistently(func() map[string]string { return hosts(ctx) }, "3s", "200ms").Should(Equal(before))
			g.Expect(leases(ctx)).To(HaveLen(len(replicas)))
		}).WithTimeout(takenOver).Should(Succeed())
	}
	list := func(ctx context.Context) {
		GinkgoHelper()
		for _, t := range tenants {
			t.list(ctx)
		}
	}
	// haveServed checks that no list of some tenants has failed.
	haveServed := func(what string, all ...*hostedTenant) {
		GinkgoHelper()
		var longest time.Duration
		for _, t := range all {
			failures, gap := t.listed()
			Expect(failures).To(BeEmpty(), t.vc.Name)
			longest = max(longest, gap)
		}
		AddReportEntry(what+": failed lists, longest gap", []any{0, longest.String()})
	}
	// shouldStop checks that no controller works, and shouldWork that those of one
	// replica work.
	shouldStop := func(ctx context.Context, name string, during time.Duration, all ...*hostedTenant) {
		GinkgoHelper()
		for _, t := range all {
			t.deploy(ctx, name)
		}
		Consistently(func(g Gomega) {
			for _, t := range all {
				g.Expect(t.status(ctx, name)()).To(HaveField("ObservedGeneration", BeZero()), t.vc.Name)
			}
		}, during, "200ms").Should(Succeed())
	}
	shouldWork := func(ctx context.Context, name string, all ...*hostedTenant) {
		GinkgoHelper()
		for _, t := range all {
			Eventually(t.status(ctx, name)).WithTimeout(takenOver).Should(HaveField("Replicas", BeEquivalentTo(3)), t.vc.Name)
			Eventually(func() int { return t.podsOf(name) }).WithTimeout(takenOver).Should(BeNumerically(">=", 3), t.vc.Name)
			Expect(t.podsOf(name)).To(Equal(3), "%s: pods of %s in all", t.vc.Name, name)
		}
	}
	shouldBeReady := func(ctx context.Context) {
		GinkgoHelper()
		for name, each := range replicas {
			Expect(kit.Probed(ctx, each.Probes, "/readyz")()).To(Equal(http.StatusOK), name)
			Expect(kit.Probed(ctx, each.Probes, "/healthz")()).To(Equal(http.StatusOK), name)
		}
	}
	// allLose has no replica reach the super cluster for a while.
	allLose := func(ctx context.Context, what string, begin, end func()) {
		GinkgoHelper()
		settled(ctx)
		before, held := hosts(ctx), leases(ctx)
		list(ctx)
		began := time.Now()
		begin()
		time.Sleep(expiry) // until the leases have expired
		shouldStop(ctx, what, max(outageTime()-time.Since(began), time.Second), tenants...)
		shouldBeReady(ctx)
		end()
		shouldWork(ctx, what, tenants...)
		AddReportEntry(what+": controllers work again after", (time.Since(began) - outageTime()).String())
		settled(ctx)
		Expect(hosts(ctx)).To(Equal(before), "no replica has taken over")
		Expect(leases(ctx)).To(ConsistOf(held))
		haveServed(what, tenants...)
		for name, each := range replicas {
			Expect(each).NotTo(gexec.Exit(), name)
		}
	}

	BeforeAll(func(ctx SpecContext) {
		super = kit.StartSite(ctx)
		start(ctx, "host-a")
		start(ctx, "host-b")
		Eventually(func() []types.UID { return leases(ctx) }).Should(HaveLen(2))
		with := map[string]bool{}
		for i := 0; len(with) < 2 || i < 3; i++ {
			Expect(i).To(BeNumerically("<", 12), "all control planes are in one replica")
			t := newHostedTenant(ctx, super, fmt.Sprintf("tenant-%d", i))
			tenants = append(tenants, t)
			with[must(host(ctx, t)())] = true
		}
	}, NodeTimeout(kit.Longest))

	It("serve on while it is paused, without controllers, and continue after it", Label("long"), func(ctx SpecContext) {
		DeferCleanup(func() { _ = syscall.Kill(super.PID(), syscall.SIGCONT) })
		allLose(ctx, "paused", func() {
			Expect(syscall.Kill(super.PID(), syscall.SIGSTOP)).To(Succeed())
		}, func() {
			Expect(syscall.Kill(super.PID(), syscall.SIGCONT)).To(Succeed())
		})
	}, SpecTimeout(4*takenOver))

	It("serve on while it is slow", func(ctx SpecContext) {
		slow := func(least, most time.Duration) func() {
			return func() {
				for _, each := range proxies {
					each.Slow(least, most)
				}
			}
		}
		allLose(ctx, "slow", slow(3*time.Second, 4*time.Second), slow(0, 0))
	}, SpecTimeout(kit.Longest))

	It("are taken over from when one of them does not reach it, while clients see no failure", func(ctx SpecContext) {
		settled(ctx)
		before := hosts(ctx)
		list(ctx)
		proxies["host-a"].Cut()
		for _, t := range tenants {
			Eventually(host(ctx, t)).WithTimeout(takenOver).Should(Equal("host-b"))
			t.deploy(ctx, "apart")
		}
		shouldWork(ctx, "apart", tenants...)
		shouldBeReady(ctx)
		Expect(proxies["host-a"].Resume()).To(Succeed())
		for _, t := range tenants {
			Eventually(host(ctx, t)).WithTimeout(takenOver).Should(Equal(before[t.vc.Name]), "it returns")
			t.deploy(ctx, "together")
		}
		shouldWork(ctx, "together", tenants...)
		haveServed("one of two", tenants...)
	}, SpecTimeout(kit.Longest))

	It("do not write for tenants that others have taken over, when one continues after a pause", Label("long"), func(ctx SpecContext) {
		settled(ctx)
		for _, t := range tenants {
			t.deploy(ctx, "suspended")
		}
		shouldWork(ctx, "suspended", tenants...)
		suspended := replicas["host-a"].Command.Process
		DeferCleanup(func() { _ = suspended.Signal(syscall.SIGCONT) })
		super.Service.Remove(replicas["host-a"].Address)
		Expect(suspended.Signal(syscall.SIGSTOP)).To(Succeed())
		// Its controllers have work when it continues.
		pods := map[string]int{}
		for _, t := range tenants {
			Eventually(host(ctx, t)).WithTimeout(takenOver).Should(Equal("host-b"))
			Eventually(func() error {
				return t.client.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
					LabelSelector: "app.kubernetes.io/name=suspended",
				})
			}).WithTimeout(takenOver).Should(Succeed())
			Eventually(func() int { return t.podsOf("suspended") }).WithTimeout(takenOver).Should(Equal(6))
			pods[t.vc.Name] = 6
		}
		Expect(suspended.Signal(syscall.SIGCONT)).To(Succeed())
		super.Service.Add(replicas["host-a"].Address)
		settled(ctx)
		for _, t := range tenants {
			Expect(t.podsOf("suspended")).To(Equal(6), t.vc.Name)
		}
	}, SpecTimeout(4*takenOver))

	It("serve those of one that is killed meanwhile as soon as it responds", Label("long"), func(ctx SpecContext) {
		settled(ctx)
		var left, killedToo []*hostedTenant
		for name, of := range hosts(ctx) {
			t := tenants[slices.IndexFunc(tenants, func(t *hostedTenant) bool { return t.vc.Name == name })]
			if of == "host-b" {
				left = append(left, t)
			} else {
				killedToo = append(killedToo, t)
			}
		}
		list(ctx)
		for _, each := range proxies {
			each.Cut()
		}
		time.Sleep(expiry)
		killed := replicas["host-a"]
		delete(replicas, "host-a")
		super.Service.Remove(killed.Address)
		killed.Kill().Wait(kit.Soon)
		shouldStop(ctx, "alone", time.Second, left...)
		Expect(proxies["host-b"].Resume()).To(Succeed())
		began := time.Now()
		for _, t := range tenants {
			Eventually(host(ctx, t)).WithTimeout(takenOver).Should(Equal("host-b"))
		}
		AddReportEntry("killed during an outage: served again after", time.Since(began).String())
		for _, t := range killedToo { // a connection that was opened to the killed one fails
			Eventually(t.tryDeploy).WithContext(ctx).WithArguments("alone").Should(Or(Succeed(), MatchError(apierrors.IsAlreadyExists, "AlreadyExists")))
		}
		shouldWork(ctx, "alone", tenants...)
		haveServed("not killed", left...)
	}, SpecTimeout(4*takenOver))
})
