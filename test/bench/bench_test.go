// Package bench measures the whole path on real apiservers. Run it with make bench; nothing in it can fail for being slow.
package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// settle is how long the system is left alone before something is counted.
const settle = 2 * time.Second

// system is a super cluster, a syncer and one tenant that has run a pod before.
type system struct {
	super  *local.SuperCluster
	syncer *local.Syncer
	tenant *local.Tenant
}

// start starts a system for a benchmark.
func start(b *testing.B) *system {
	b.Helper()
	super := startSuper(b, "--nodes", "1")
	syncer := local.StartSyncer(super.Config, logr.Discard())
	b.Cleanup(func() { must(b, syncer.Stop()) })
	tenant, err := super.NewTenant(b.Context(), &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bench"},
	})
	must(b, err)
	s := &system{super: super, syncer: syncer, tenant: tenant}
	s.createPod(b, "warm")
	s.waitRunning(b, "warm")
	time.Sleep(settle)
	return s
}

// startSuper starts a super cluster for a benchmark.
func startSuper(b *testing.B, args ...string) *local.SuperCluster {
	b.Helper()
	if os.Getenv(local.Binary) == "" {
		b.Skipf("set %s to the path of vc-standalone; make bench does", local.Binary)
	}
	ctrl.SetLogger(logr.Discard())
	super, err := local.Start(b.Context(), b.TempDir(), append([]string{"--syncer=false"}, args...)...)
	must(b, err)
	b.Cleanup(func() { must(b, super.Stop()) })
	return super
}

// BenchmarkPod measures one pod at a time on an idle system: from the answer to its creation in the tenant until the super
// cluster's watch shows its copy, and until the tenant's watch shows it running. It prints percentiles, and the requests that the
// syncer sent for a pod. Each pod is 200 ms after the one before.
func BenchmarkPod(b *testing.B) {
	s := start(b)
	copies := s.watch(b, s.super.Client, s.tenant.Super("default"))
	own := s.watch(b, s.tenant.Client, "default")
	before, err := s.syncer.Requests()
	must(b, err)

	var down, up []time.Duration
	names := make([]string, b.N)
	b.ResetTimer()
	for i := range b.N {
		names[i] = fmt.Sprintf("pod-%d", i)
		s.createPod(b, names[i])
		created := time.Now()
		down = append(down, waitFor(b, copies, names[i], watch.Added, anyPod).Sub(created))
		up = append(up, waitFor(b, own, names[i], watch.Modified, isRunning).Sub(created))
		time.Sleep(200 * time.Millisecond)
	}
	b.StopTimer()
	time.Sleep(settle)
	made, err := s.syncer.Requests()
	must(b, err)
	for _, name := range names {
		must(b, s.tenant.Client.Delete(b.Context(), pod(name), client.GracePeriodSeconds(1)))
		waitFor(b, own, name, watch.Deleted, anyPod)
	}
	time.Sleep(settle)
	removed, err := s.syncer.Requests()
	must(b, err)

	percentiles(b, down, "down")
	percentiles(b, up, "running")
	requests(b, made.Since(before), "create to Running")
	requests(b, removed.Since(made), "deletion")
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example/app:1"}}},
	}
}

func (s *system) createPod(b *testing.B, name string) {
	b.Helper()
	must(b, s.tenant.Client.Create(b.Context(), pod(name)))
}

func (s *system) waitRunning(b *testing.B, name string) {
	b.Helper()
	waitFor(b, s.watch(b, s.tenant.Client, "default"), name, "", isRunning)
}

// seen is an event and when it arrived.
type seen struct {
	watch.Event
	at time.Time
}

// watch streams the events of the pods of a namespace.
func (s *system) watch(b *testing.B, c client.WithWatch, namespace string) <-chan seen {
	b.Helper()
	w, err := c.Watch(b.Context(), &corev1.PodList{}, client.InNamespace(namespace))
	must(b, err)
	b.Cleanup(w.Stop)
	events := make(chan seen, 1024)
	go func() {
		defer close(events)
		for e := range w.ResultChan() {
			events <- seen{e, time.Now()}
		}
	}()
	return events
}

// waitFor waits for an event of a pod and says when it came. An empty kind is any.
func waitFor(b *testing.B, events <-chan seen, name string, kind watch.EventType, match func(*corev1.Pod) bool) time.Time {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case e := <-events:
			p, ok := e.Object.(*corev1.Pod)
			if ok && p.Name == name && (kind == "" || e.Type == kind) && match(p) {
				return e.at
			}
		case <-ctx.Done():
			b.Fatalf("pod %s: no event within a minute", name)
		}
	}
}

func anyPod(*corev1.Pod) bool { return true }

func isRunning(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

// percentiles reports times in milliseconds.
func percentiles(b *testing.B, times []time.Duration, name string) {
	b.Helper()
	slices.Sort(times)
	at := func(p int) float64 { return float64(times[(len(times)-1)*p/100].Microseconds()) / 1000 }
	for _, p := range []int{0, 50, 99, 100} {
		b.ReportMetric(at(p), fmt.Sprintf("ms-%s-p%d", name, p))
	}
}

// requests logs requests for one pod, by side, verb and resource.
func requests(b *testing.B, sent local.Requests, what string) {
	b.Helper()
	for _, request := range slices.Sorted(maps.Keys(sent)) {
		b.Logf("%s: %.2f a pod: %s", what, sent[request]/float64(b.N), request)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
