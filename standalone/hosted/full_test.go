package hosted_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// BenchmarkAGreedyTenant tells what a tenant costs that creates 690 ConfigMaps
// of a megabyte and lists them all, with limits and without, and what another
// tenant notices of it. Run it with -benchtime 1x, one of both at a time. That
// without limits takes some 20 GB.
func BenchmarkAGreedyTenant(b *testing.B) {
	for name, limits := range map[string]quota.Limits{
		"limited":   {Bytes: 64 * mebi, Objects: 20_000, WriteBytesPerSecond: 2 * mebi},
		"unlimited": {},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				beGreedy(b, limits)
			}
		})
	}
}

func beGreedy(b *testing.B, limits quota.Limits) {
	opts := options(b.TempDir())
	host, greedy, honest := startPair(b, opts, hosted.Spec{Limits: limits})
	b.ReportMetric(resident(b), "MB-before")
	alone := honestRequests(b, honest, 5*time.Second)
	reportLatency(b, alone, "alone")

	ended, stored := make(chan struct{}), 0
	go func() {
		defer close(ended)
		stored = storeAll(b.Context(), greedy)
	}()
	reportLatency(b, untilEnd(b, honest, ended), "beside-writes")
	b.ReportMetric(float64(stored), "stored")
	b.ReportMetric(resident(b), "MB-full")

	ended = make(chan struct{})
	go func() {
		defer close(ended)
		listAll(b.Context(), greedy)
	}()
	reportLatency(b, untilEnd(b, honest, ended), "beside-lists")
	b.ReportMetric(peak(b), "MB-peak-of-lists")

	stopBench(b, host)
	debug.FreeOSMemory()
	resetPeak(b)
	begin := time.Now()
	host, _, _ = startPair(b, opts, hosted.Spec{Limits: limits})
	b.ReportMetric(time.Since(begin).Seconds(), "s-restart")
	b.ReportMetric(peak(b), "MB-peak-of-restart")
	stopBench(b, host)
}

// startPair starts a host with two control planes of a spec.
func startPair(b *testing.B, opts hosted.Options, spec hosted.Spec) (host *hosted.Host, greedy, honest kubernetes.Interface) {
	b.Helper()
	host, err := hosted.Start(context.Background(), opts)
	if err != nil {
		b.Fatal(err)
	}
	clients := map[string]kubernetes.Interface{}
	for _, name := range []string{"greedy", "honest"} {
		spec.Name = name
		plane, err := host.Run(spec)
		if err != nil {
			b.Fatal(err)
		}
		select {
		case <-plane.Ready():
		case <-plane.Done():
			b.Fatal(plane.Err())
		}
		if clients[name], err = kubernetes.NewForConfig(plane.RESTConfig()); err != nil {
			b.Fatal(err)
		}
	}
	return host, clients["greedy"], clients["honest"]
}

func stopBench(b *testing.B, host *hosted.Host) {
	b.Helper()
	if err := host.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// storeAll creates the ConfigMaps, by several at a time, and returns how many
// were stored.
func storeAll(ctx context.Context, client kubernetes.Interface) int {
	var work sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for worker := range 4 {
		work.Go(func() {
			for i := worker; i < 690; i += 4 {
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("big-%d", i)}, Data: map[string]string{"x": strings.Repeat("x", 1_000_000)},
				}, metav1.CreateOptions{})
				if err == nil {
					mu.Lock()
					stored++
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	return stored
}

// listAll lists all ConfigMaps as JSON, as YAML and as tables, eight lists at a
// time. It discards the responses.
func listAll(ctx context.Context, client kubernetes.Interface) {
	var work sync.WaitGroup
	for i := range 8 {
		accept := []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"}[i%3]
		work.Go(func() {
			body, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/configmaps").Param("includeObject", "Object").
				SetHeader("Accept", accept).Stream(ctx)
			if err != nil {
				return
			}
			for buffer := make([]byte, 1<<16); err == nil; {
				_, err = body.Read(buffer)
			}
			_ = body.Close()
		})
	}
	work.Wait()
}

// honestRequests creates and gets ConfigMaps for a while, and returns how long
// a pair takes.
func honestRequests(b *testing.B, client kubernetes.Interface, while time.Duration) []time.Duration {
	b.Helper()
	ended := make(chan struct{})
	time.AfterFunc(while, func() { close(ended) })
	return untilEnd(b, client, ended)
}

func untilEnd(b *testing.B, client kubernetes.Interface, ended <-chan struct{}) []time.Duration {
	b.Helper()
	cms := client.CoreV1().ConfigMaps("default")
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	var times []time.Duration
	for {
		select {
		case <-ended:
			return times
		case <-pause.C:
		}
		begin := time.Now()
		made, err := cms.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "small-"}}, metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := cms.Get(b.Context(), made.Name, metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
}

func reportLatency(b *testing.B, times []time.Duration, when string) {
	b.Helper()
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-p50-"+when)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "ms-p99-"+when)
}

// resident is the process' memory now, and peak the most of it since resetPeak.
func resident(b *testing.B) float64 { return memory(b, "VmRSS:") }
func peak(b *testing.B) float64     { return memory(b, "VmHWM:") }

func resetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		b.Fatal(err)
	}
}

func memory(b *testing.B, field string) float64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), field)
	var kilobytes float64
	if _, err := fmt.Sscanf(rest, "%f", &kilobytes); err != nil {
		b.Fatal(err)
	}
	return kilobytes / 1024
}
