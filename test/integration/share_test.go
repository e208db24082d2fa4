package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// servedAgain is how long a tenant may wait for another replica to take over,
// on an idle machine.
const servedAgain = 30 * time.Second

// asLong is the timeout of work on an object, long enough for work in progress
// to outlast a replica's suspension.
const asLong = time.Minute

// underWay is the number of pods that a replica is syncing when it is
// suspended.
const underWay = 20

// Each replica is a process whose requests to the super cluster are recorded,
// and so are all requests to the first tenant. The tenants are busy throughout.
var _ = Describe("Syncers that share the tenants", Ordered, ContinueOnFailure, func() {
	s := &sharing{}

	BeforeAll(func(ctx SpecContext) {
		s.begin(ctx)
	})

	It("hand tenants over to a new replica, and back when it is stopped", func(ctx SpecContext) {
		added := s.start(ctx)
		Eventually(s.dividedAmong).WithContext(ctx).Should(Equal([]int{4, 4, 4, 4}), "by each replica")
		s.shouldServe(ctx, "a replica was added")
		Expect(added.Stop()).To(Succeed())
		Expect(s.leases(ctx)).To(HaveLen(3), "the replica has deleted its lease")
		s.shouldServe(ctx, "a replica was stopped")
	})

	It("take over from a replica that is killed, and from one that is suspended, which exits without writing when it continues", func(ctx SpecContext) {
		still := s.owner(ctx, s.tenants[0])
		began := time.Now()
		kit.Create(ctx, s.tenants[0].Client, deployment("default", "under-way", underWay))
		Eventually(s.toFirst).WithPolling(time.Millisecond).WithArguments(still, began).
			Should(ContainElement(HaveField("Path", And(ContainSubstring("under-way"), HaveSuffix("binding")))))
		i := slices.Index(s.replicas, still)
		killed := s.replicas[(i+1)%3]
		s.left = s.replicas[(i+2)%3]
		Expect(syscall.Kill(still.PID(), syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = syscall.Kill(still.PID(), syscall.SIGCONT) })
		Expect(killed.Kill()).To(Succeed())
		s.shouldServe(ctx, "one replica was killed and one was suspended")
		Eventually(s.leases).WithContext(ctx).Should(HaveLen(1), "the others' are deleted, one maybe after its tenants have moved")

		resumed := time.Now()
		Expect(syscall.Kill(still.PID(), syscall.SIGCONT)).To(Succeed())
		ending, cancel := context.WithTimeout(ctx, kit.Soon)
		defer cancel()
		Expect(still.Ended(ending)).To(MatchError(ContainSubstring("exit status 1")))
		Expect(still.writesSince(resumed)).To(BeEmpty(), "writes to the super cluster after the lease is gone")
		Expect(s.toFirst(still, resumed)).To(BeEmpty(), "writes to the tenant after the lease is gone")
	})

	It("have lost nothing and duplicated nothing", func(ctx SpecContext) {
		for _, l := range s.loads {
			l.end()
		}
		for _, l := range s.loads {
			l.shouldBeWhole(ctx, s.copies)
		}
	})

	It("exit when their lease is deleted, and do not recreate it", func(ctx SpecContext) {
		all, err := s.leases(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.ReplicasNamespace, Name: all[0]}}
		Expect(super.Client.Delete(ctx, lease)).To(Succeed())
		ending, cancel := context.WithTimeout(ctx, kit.Soon)
		defer cancel()
		Expect(s.left.Ended(ending)).To(MatchError(ContainSubstring("exit status 1")))
		Expect(s.leases(ctx)).To(BeEmpty())
	})
})

var _ = Describe("A syncer that is the only replica", func() {
	It("serves all tenants, as its metrics report, and deletes its lease when it stops", func(ctx SpecContext) {
		const ns = "alone"
		useSyncer(account, func(o *app.Options) { o.ShareTenants = true })
		red := tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), kit.Pod(ns, "web"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web"))
		// Replicas that other specs have killed count until their leases expire.
		for _, name := range []string{"vc_syncer_share_replicas", "vc_syncer_share_lease_held"} {
			Eventually(syncer.Metric).WithArguments(name, map[string]string{}).Should(Equal(1.0), name)
		}
		lone := &sharing{}
		Eventually(lone.leases).WithContext(ctx).Should(HaveLen(1))
		Expect(syncer.Stop()).To(Succeed())
		Expect(lone.leases(ctx)).To(BeEmpty())
		Expect(syncer.Metric("vc_syncer_share_lease_held", map[string]string{})).To(BeZero())
	})
})

var _ = Describe("Syncers that share the tenants and enforce quotas", func() {
	It("do not exceed a tenant's limit while one takes over from another (QV-1, QV-16)", func(ctx SpecContext) {
		const ns, limit = "many", 40
		takeSyncerAway()
		s := &sharing{dir: kit.TempDir(), args: []string{"--enable-quota-validation"}}
		DeferCleanup(s.killAll)
		s.start(ctx)
		s.start(ctx)
		Eventually(s.dividedAmong).WithContext(ctx).WithTimeout(2*kit.Soon).Should(Equal([]int{2, 2}), "by each replica")
		copies := watchCopies(ctx)
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "40"}))
		began := time.Now()
		kit.Create(ctx, red.Client, kit.Namespace(ns), deployment(ns, "web", 2*limit))
		Eventually(copies.Now).WithArguments(red).Should(BeNumerically(">", limit/4))
		owner := s.ownerSince(ctx, red, began) // which may have nothing to write any more
		Expect(owner.Kill()).To(Succeed())
		s.start(ctx)
		Eventually(copies.Now).WithArguments(red).WithTimeout(4 * servedAgain).Should(Equal(limit))

		Expect(copies.Most(red)).To(Equal(limit), "while a replica was killed")

		By("replacing all pods while a replica is stopped")
		began = time.Now()
		for _, p := range must(pods(ctx, red.Client, ns)) {
			Expect(client.IgnoreNotFound(red.Client.Delete(ctx, &p, client.GracePeriodSeconds(0)))).To(Succeed())
		}
		Expect(s.ownerSince(ctx, red, began).Stop()).To(Succeed())
		Eventually(quotaOf(ctx, red)).WithTimeout(4 * servedAgain).Should(Equal("pods 40/40"))
		Expect(copies.Most(red)).To(Equal(limit), "while a replica was stopped")
	})
})

// sharing has the environment that the specs about replicas share.
type sharing struct {
	dir     string
	args    []string // of the replicas, in addition to those that enable sharing
	tenants []*local.Tenant
	// first records the requests to the first tenant's apiserver.
	first    *local.Witness
	loads    []*load
	copies   *local.Copies
	replicas []*replica
	// usual is the time until all tenants are served without a disruption,
	// which shows how busy the machine is.
	usual time.Duration
	// left is the replica that is left in the end.
	left *replica
}

// replica is a syncer in a process of its own, with the witness of its
// requests.
type replica struct {
	*local.SyncerProcess
	witness *local.Witness
}

// begin replaces the syncer that other specs share with three replicas, and
// creates busy tenants.
func (s *sharing) begin(ctx context.Context) {
	GinkgoHelper()
	s.dir = kit.TempDir()
	var err error
	s.copies, err = local.WatchCopies(ctx, super.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(s.copies.Stop()).To(Succeed()) })
	takeSyncerAway()
	DeferCleanup(s.killAll)
	for range 3 {
		s.start(ctx)
	}
	for _, t := range []*local.Tenant{s.tenantWithWitness(ctx), tenant(ctx), tenant(ctx)} {
		l := newLoad(ctx, t, "shared")
		s.tenants, s.loads = append(s.tenants, t), append(s.loads, l)
		l.start(ctx)
		DeferCleanup(l.end)
	}
	s.usual = s.shouldServe(ctx, "nothing happened")
}

// tenantWithWitness creates a tenant with a witness of the syncers' requests.
func (s *sharing) tenantWithWitness(ctx context.Context) *local.Tenant {
	GinkgoHelper()
	host := startOtherHost(ctx)
	DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
	there := kit.ControlPlane(ctx, host)
	var err error
	s.first, err = local.NewWitness(there.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.first.Close)
	file := filepath.Join(s.dir, "kubeconfig-first")
	Expect(s.first.WriteKubeconfig(file)).To(Succeed())
	kubeconfig, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return tenantThrough(ctx, there, kubeconfig)
}

// killAll kills the replicas that have not exited.
func (s *sharing) killAll() {
	GinkgoHelper()
	for _, r := range s.replicas {
		_ = r.Kill() // it may have exited, as a spec expects
		Expect(r.witness.Close()).To(Succeed())
	}
}

// start starts a replica and waits for its lease.
func (s *sharing) start(ctx context.Context) *replica {
	GinkgoHelper()
	witness, err := local.NewWitness(account)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(s.dir, fmt.Sprint("kubeconfig-", len(s.replicas)))
	Expect(witness.WriteKubeconfig(file)).To(Succeed())
	before, err := s.leases(ctx)
	Expect(err).NotTo(HaveOccurred())
	args := append([]string{"--kubeconfig", file, "--share-tenants", "--patrol", noPatrol.String(), "--timeout", asLong.String()}, s.args...)
	process, err := super.StartSyncerProcess(GinkgoWriter, args...)
	Expect(err).NotTo(HaveOccurred())
	r := &replica{process, witness}
	s.replicas = append(s.replicas, r)
	Eventually(s.leases).WithContext(ctx).Should(ContainElement(Not(BeElementOf(before))))
	return r
}

// leases returns the names of the replicas' leases.
func (s *sharing) leases(ctx context.Context) ([]string, error) {
	list := &coordinationv1.LeaseList{}
	err := super.Client.List(ctx, list, client.InNamespace(rbac.ReplicasNamespace))
	var all []string
	for _, l := range list.Items {
		all = append(all, l.Name)
	}
	return all, err
}

// dividedAmong returns for each replica among how many replicas it divides the
// tenants.
func (s *sharing) dividedAmong(ctx context.Context) ([]int, error) {
	list := &coordinationv1.LeaseList{}
	err := super.Client.List(ctx, list, client.InNamespace(rbac.ReplicasNamespace))
	var all []int
	for _, l := range list.Items {
		all = append(all, len(strings.Split(l.Annotations["tenancy.x-k8s.io/divided-among"], ",")))
	}
	return all, err
}

// shouldServe waits until a new pod of each tenant runs, and returns the time
// that took.
func (s *sharing) shouldServe(ctx context.Context, after string) time.Duration {
	GinkgoHelper()
	began := time.Now()
	name := fmt.Sprint("served-", began.UnixNano())
	for _, t := range s.tenants {
		kit.Create(ctx, t.Client, kit.Pod("default", name))
	}
	for _, t := range s.tenants {
		Eventually(running).WithContext(ctx).WithArguments(t.Client, "default").WithTimeout(2*servedAgain+3*s.usual-time.Since(began)).
			Should(ContainElement(name), "tenant %s", t.Key())
	}
	took := time.Since(began)
	AddReportEntry("all tenants served after "+after, took.Round(time.Millisecond).String())
	return took
}

// owner returns the replica that serves a busy tenant: only its owner writes
// for a tenant.
func (s *sharing) owner(ctx context.Context, t *local.Tenant) *replica {
	GinkgoHelper()
	return s.ownerSince(ctx, t, time.Now())
}

// ownerSince returns the replica that has served a busy tenant since a time.
func (s *sharing) ownerSince(ctx context.Context, t *local.Tenant, began time.Time) *replica {
	GinkgoHelper()
	var found []*replica
	Eventually(func() []*replica {
		found = slices.DeleteFunc(slices.Clone(s.replicas), func(r *replica) bool {
			return !slices.ContainsFunc(r.writesSince(began), func(w local.Write) bool { return strings.Contains(w.Path, t.Key()) })
		})
		return found
	}).WithContext(ctx).Should(HaveLen(1))
	return found[0]
}

// writesSince returns the writes of a replica after a time, except those of its
// lease.
func (r *replica) writesSince(t time.Time) []local.Write {
	return slices.DeleteFunc(r.witness.Since(t), func(w local.Write) bool { return strings.Contains(w.Path, "/leases") })
}

// toFirst returns the writes of a replica to the first tenant after a time.
func (s *sharing) toFirst(r *replica, t time.Time) []local.Write {
	return slices.DeleteFunc(s.first.Since(t), func(w local.Write) bool { return !strings.HasPrefix(w.Agent, r.Agent+"/") })
}
