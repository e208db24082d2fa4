// Package bench measures a whole vc-standalone: go test -run '^$' -bench . ./bench
package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/app"
	"github.com/virtualcluster/virtualcluster/standalone/internal/childprocess"
)

const (
	patience = 2 * time.Minute
	poll     = 5 * time.Millisecond
	// settled is how long the resident memory has to stay as it is, give or
	// take one percent.
	settled = 15 * time.Second
)

func TestMain(m *testing.M) {
	childprocess.RunIfChild(func() { os.Exit(app.Main(context.Background())) })
	os.Exit(m.Run())
}

// BenchmarkReady measures the time from the creation of a VirtualCluster until
// it is Ready. Each is deleted before the next is created; -benchtime 10x makes
// it ten.
func BenchmarkReady(b *testing.B) {
	_, c := up(b)
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		vc := create(b, c, fmt.Sprintf("tenant-%d", len(times)))
		awaitReady(b, c, vc)
		times = append(times, time.Since(begin))
		remove(b, c, vc)
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds(), "s-median")
	b.ReportMetric(times[0].Seconds(), "s-min")
	b.ReportMetric(times[len(times)-1].Seconds(), "s-max")
}

// BenchmarkMemory measures the resident memory of the process with idle tenants.
func BenchmarkMemory(b *testing.B) {
	for _, tenants := range []int{0, 2, 10} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			pid, c := up(b)
			for i := range tenants {
				create(b, c, fmt.Sprintf("tenant-%d", i))
			}
			for i := range tenants {
				awaitReady(b, c, virtualCluster(fmt.Sprintf("tenant-%d", i)))
			}
			for b.Loop() {
				b.ReportMetric(settledMiB(b, pid), "MiB")
			}
		})
	}
}

// up starts a vc-standalone for the benchmark.
func up(b *testing.B) (pid int, c client.Client) {
	b.Helper()
	dir := b.TempDir()
	p, err := childprocess.Start(context.Background(), "up", "--data-dir", dir, "--port", "0")
	must(b, err)
	b.Cleanup(func() {
		_, err := p.Stop(within(b), syscall.SIGKILL) // its data is not needed any more
		must(b, err)
	})
	must(b, p.AwaitReady(within(b)))
	data, err := os.ReadFile(dir + "/super.kubeconfig")
	must(b, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	must(b, err)
	config.QPS = -1
	scheme := runtime.NewScheme()
	must(b, tenancyv1alpha1.AddToScheme(scheme))
	c, err = client.New(config, client.Options{Scheme: scheme})
	must(b, err)
	return p.PID(), c
}

func within(b *testing.B) context.Context {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.Cleanup(cancel)
	return ctx
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func virtualCluster(name string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func create(b *testing.B, c client.Client, name string) *tenancyv1alpha1.VirtualCluster {
	b.Helper()
	vc := virtualCluster(name)
	must(b, c.Create(b.Context(), vc))
	return vc
}

func awaitReady(b *testing.B, c client.Client, vc *tenancyv1alpha1.VirtualCluster) {
	b.Helper()
	until(b, poll, func() bool {
		must(b, c.Get(b.Context(), client.ObjectKeyFromObject(vc), vc))
		return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionReady)
	})
}

func remove(b *testing.B, c client.Client, vc *tenancyv1alpha1.VirtualCluster) {
	b.Helper()
	must(b, c.Delete(b.Context(), vc))
	until(b, poll, func() bool {
		err := c.Get(b.Context(), client.ObjectKeyFromObject(vc), vc)
		must(b, client.IgnoreNotFound(err))
		return apierrors.IsNotFound(err)
	})
}

// settledMiB waits until the resident memory no longer changes, and returns it.
func settledMiB(b *testing.B, pid int) float64 {
	b.Helper()
	last, since := residentMiB(b, pid), time.Now()
	until(b, time.Second, func() bool {
		now := residentMiB(b, pid)
		if now > last*1.01 || now < last*0.99 {
			last, since = now, time.Now()
		}
		return time.Since(since) > settled
	})
	return residentMiB(b, pid)
}

// residentMiB is the resident memory of a process as Linux tells it.
func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("only Linux tells the resident memory of a process")
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	must(b, err)
	return kib / 1024
}

func until(b *testing.B, interval time.Duration, condition func() bool) {
	b.Helper()
	ctx := within(b)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatalf("not after %s", patience)
		}
	}
}
