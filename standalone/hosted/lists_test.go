package hosted_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
)

const (
	listedObjects = 50_000
	listClients   = 100
	listFor       = 15 * time.Second
	listMemory    = 2 << 30
)

// BenchmarkAHundredListers tells what another tenant notices of one that lists
// 50,000 objects in a loop from 100 clients, and how much memory the process
// takes, which has a limit of 2 GiB. Run it with -benchtime 1x.
func BenchmarkAHundredListers(b *testing.B) {
	spec := hosted.Spec{Requests: inflight.Limits{Reads: 100, Writes: 50, Watches: 1000}}
	for isolation, shared := range map[string]bool{"dedicated": false, "shared": true} {
		spec.Shared = shared
		for name, accept := range map[string]string{"json": "application/json", "table": "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			b.Run(isolation+"/"+name, func(b *testing.B) {
				before := debug.SetMemoryLimit(listMemory)
				defer debug.SetMemoryLimit(before)
				for range b.N {
					beListed(b, spec, accept)
				}
			})
		}
	}
}

func beListed(b *testing.B, spec hosted.Spec, accept string) {
	b.Helper()
	host, greedy, honest := startPair(b, options(b.TempDir()), spec)
	createMany(b, greedy)
	debug.FreeOSMemory()
	b.ReportMetric(resident(b), "MB-before")
	reportLatency(b, honestRequests(b, honest, listFor), "alone")

	resetPeak(b)
	ended := make(chan struct{})
	var lists *listing
	go func() {
		defer close(ended)
		lists = listInLoops(b.Context(), greedy, accept)
	}()
	reportLatency(b, untilEnd(b, honest, ended), "beside-lists")
	b.ReportMetric(peak(b), "MB-peak-of-lists")
	b.ReportMetric(float64(lists.served.Load()), "lists")
	b.ReportMetric(float64(lists.rejected.Load()), "rejected")
	stopBench(b, host)
}

// createMany creates the ConfigMaps that are listed, of a kilobyte each.
func createMany(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	var work sync.WaitGroup
	const workers = 16
	for worker := range workers {
		work.Go(func() {
			for i := worker; i < listedObjects; i += workers {
				_, err := client.CoreV1().ConfigMaps("default").Create(b.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%d", i)}, Data: map[string]string{"x": unlike(i)},
				}, metav1.CreateOptions{})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}

// unlike returns text that gzip cannot make much shorter.
func unlike(seed int) string {
	source, text := rand.New(rand.NewPCG(uint64(seed), 0)), make([]byte, 350)
	for i := range text {
		text[i] = byte(source.Uint32())
	}
	return hex.EncodeToString(text)
}

// listing counts lists.
type listing struct{ served, rejected atomic.Int64 }

// listInLoops lists all ConfigMaps from many clients for a while. A client that
// is rejected retries at once.
func listInLoops(ctx context.Context, client kubernetes.Interface, accept string) *listing {
	ctx, cancel := context.WithTimeout(ctx, listFor)
	defer cancel()
	counts := &listing{}
	var work sync.WaitGroup
	for range listClients {
		work.Go(func() {
			for ctx.Err() == nil {
				body, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/configmaps").SetHeader("Accept", accept).MaxRetries(0).Stream(ctx)
				if err != nil {
					counts.rejected.Add(1)
					continue
				}
				if _, err := io.Copy(io.Discard, body); err == nil {
					counts.served.Add(1)
				}
				_ = body.Close()
			}
		})
	}
	work.Wait()
	return counts
}
