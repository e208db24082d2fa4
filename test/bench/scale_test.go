package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Sizes of the system that is patrolled and restarted, by environment variables, since a small one shows that it works.
const (
	sizeTenants = "BENCH_TENANTS"
	sizePods    = "BENCH_SCALE_PODS" // of all tenants together
)

// population is a super cluster with running pods of several tenants.
type population struct {
	super   *local.SuperCluster
	tenants []*local.Tenant
	pods    int
}

// BenchmarkScale measures a system that is full and in order: what a round of the patrol costs, and how soon a syncer that is
// started carries a new pod. They share the population, which takes minutes to make.
func BenchmarkScale(b *testing.B) {
	p := populate(b, size(b, sizeTenants, 2), size(b, sizePods, 20))
	b.Run("Patrol", p.patrol)
	b.Run("Restart", p.restart)
}

// patrol measures rounds of the patrol by what a syncer with a patrol every few seconds uses more than one without.
func (p *population) patrol(b *testing.B) {
	const every, window = 5 * time.Second, 30 * time.Second
	idle, _ := p.usage(b, time.Hour, window)
	busy, sent := p.usage(b, every, window)
	rounds := float64(window / every)
	b.ReportMetric((busy-idle).Seconds()/rounds*1000, "ms-CPU/round")
	b.ReportMetric(total(sent)/rounds, "requests/round")
	requests(b, sent, "patrol")
}

// usage is the CPU time and the requests of a syncer with a patrol at an interval, in a window after it has settled.
func (p *population) usage(b *testing.B, interval, window time.Duration) (time.Duration, local.Requests) {
	b.Helper()
	syncer := p.start(func(o *app.Options) { o.Patrol = interval })
	defer func() { must(b, syncer.Stop()) }()
	p.awaitCarried(b)
	time.Sleep(10 * settle)
	before, err := syncer.Requests()
	must(b, err)
	begun := cpuTime(b)
	time.Sleep(window)
	used := cpuTime(b) - begun
	after, err := syncer.Requests()
	must(b, err)
	return used, after.Since(before)
}

// restart measures how long after its start a syncer has carried a pod that waited for it, the first one and that of each tenant.
func (p *population) restart(b *testing.B) {
	var first, all []time.Duration
	for i := range b.N {
		name := fmt.Sprintf("waiting-%d", i)
		for _, t := range p.tenants {
			must(b, t.Client.Create(b.Context(), pod(name)))
		}
		copies := make(chan time.Time, len(p.tenants))
		for _, t := range p.tenants {
			events := p.watch(b, t)
			go func() { copies <- waitFor(b, events, name, watch.Added, anyPod) }()
		}
		begun := time.Now()
		syncer := p.start()
		first = append(first, (<-copies).Sub(begun))
		last := begun
		for range len(p.tenants) - 1 {
			last = <-copies
		}
		all = append(all, last.Sub(begun))
		time.Sleep(settle)
		sent, err := syncer.Requests()
		must(b, err)
		requests(b, sent, fmt.Sprintf("restart with %d pods in %d tenants", p.pods, len(p.tenants)))
		must(b, syncer.Stop())
	}
	percentiles(b, first, "first")
	percentiles(b, all, "all-tenants")
}

// start starts a syncer.
func (p *population) start(change ...func(*app.Options)) *local.Syncer {
	return local.StartSyncer(p.super.Config, logr.Discard(), change...)
}

// watch streams the events of the pods of a tenant in the super cluster.
func (p *population) watch(b *testing.B, t *local.Tenant) <-chan seen {
	b.Helper()
	s := &system{super: p.super}
	return s.watch(b, p.super.Client, t.Super("default"))
}

// awaitCarried waits until a syncer carries every tenant's objects, by a pod of each.
func (p *population) awaitCarried(b *testing.B) {
	b.Helper()
	for _, t := range p.tenants {
		probe := pod("probe")
		must(b, client.IgnoreAlreadyExists(t.Client.Create(b.Context(), probe)))
		s := &system{super: p.super, tenant: t}
		s.waitRunning(b, probe.Name)
		must(b, t.Client.Delete(b.Context(), probe, client.GracePeriodSeconds(1)))
	}
}

// populate makes tenants and pods, and waits until all run.
func populate(b *testing.B, tenants, pods int) *population {
	b.Helper()
	p := &population{super: startSuper(b, "--nodes", strconv.Itoa(1+pods/100)), tenants: make([]*local.Tenant, tenants), pods: pods}
	syncer := p.start()
	defer func() { must(b, syncer.Stop()) }()
	inParallel(b, 4, tenants, func(i int) (err error) {
		p.tenants[i], err = p.super.NewTenant(b.Context(), &tenancyv1alpha1.VirtualCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("scale-%d", i)},
		})
		return err
	})
	inParallel(b, 16, pods, func(i int) error {
		return p.tenants[i%tenants].Client.Create(b.Context(), pod(fmt.Sprintf("pod-%d", i)))
	})
	for _, t := range p.tenants {
		must(b, wait.PollUntilContextTimeout(b.Context(), time.Second, 30*time.Minute, true, allRun(t.Client)))
	}
	return p
}

// allRun says whether all pods that a client sees are running.
func allRun(c client.Client) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return !isRunning(&p) }), nil
	}
}

// inParallel does something so many times, a few at a time.
func inParallel(b *testing.B, workers, times int, do func(int) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(workers)
	for i := range times {
		group.Go(func() error { return do(i) })
	}
	must(b, group.Wait())
}

// size is a number from the environment.
func size(b *testing.B, variable string, otherwise int) int {
	b.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	must(b, err)
	return n
}

// cpuTime is how long this process, which runs the syncer, has used a processor.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// total is the number of all requests.
func total(sent local.Requests) (sum float64) {
	for _, n := range sent {
		sum += n
	}
	return sum
}
