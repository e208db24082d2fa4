package informer

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// kinds are the informers to compare.
var kinds = []struct {
	name string
	over func(cache.ListerWatcher) cache.SharedIndexInformer
}{{"lean", over}, {"stock", stockOver}}

// nothing is a handler that does nothing.
var nothing = cache.ResourceEventHandlerFuncs{}

// BenchmarkIdle measures the resources of an idle informer with one handler:
// goroutines, their stacks, and the heap. The watch is in memory, so those of
// an HTTP connection are not included.
func BenchmarkIdle(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			const informers = 500
			for b.Loop() {
				source := cachetesting.NewFakeControllerSource()
				ctx, cancel := context.WithCancel(b.Context())
				var running sync.WaitGroup
				before := held()
				all := make([]cache.SharedIndexInformer, informers)
				for n := range all {
					all[n] = kind.over(source)
					joined, err := all[n].AddEventHandler(nothing)
					if err != nil {
						b.Fatal(err)
					}
					running.Go(func() { all[n].RunWithContext(ctx) })
					<-joined.HasSyncedChecker().Done()
				}
				after := held()
				b.ReportMetric(float64(after.goroutines-before.goroutines)/informers, "goroutines/informer")
				b.ReportMetric(float64(after.stacks-before.stacks)/informers, "stack-B/informer")
				b.ReportMetric(float64(after.heap-before.heap)/informers, "heap-B/informer")
				cancel()
				running.Wait()
				source.Shutdown()
			}
		})
	}
}

// holding is what a process uses.
type holding struct{ goroutines, stacks, heap int }

func held() holding {
	runtime.GC()
	runtime.GC() // stacks shrink in the first, and are freed in the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return holding{runtime.NumGoroutine(), int(stats.StackInuse), int(stats.HeapAlloc)}
}

// BenchmarkEvent measures the time of an event from the watch to a handler,
// with 1,000 objects.
func BenchmarkEvent(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			source := cachetesting.NewFakeControllerSource()
			defer source.Shutdown()
			objects := make([]*corev1.ConfigMap, 1000)
			for n := range objects {
				objects[n] = configMap(fmt.Sprintf("object-%d", n), "1")
				source.Add(objects[n])
			}
			told := make(chan struct{}, 1)
			i := kind.over(source)
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			joined, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { told <- struct{}{} }})
			if err != nil {
				b.Fatal(err)
			}
			running.Go(func() { i.RunWithContext(ctx) })
			<-joined.HasSyncedChecker().Done()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				source.Broadcaster.Action(watch.Modified, objects[n%len(objects)])
				<-told
			}
		})
	}
}

// BenchmarkHeld measures the memory of a pod in an informer.
func BenchmarkHeld(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			const pods = 5000
			for b.Loop() {
				i := kind.over(nil)
				before := held()
				for n := range pods {
					// A source would keep the objects, so they are added to the
					// index directly.
					if err := i.GetIndexer().Add(podOf(fmt.Sprint(n))); err != nil {
						b.Fatal(err)
					}
				}
				after := held()
				b.ReportMetric(float64(after.heap-before.heap)/pods, "heap-B/pod")
				runtime.KeepAlive(i)
			}
		})
	}
}

// BenchmarkPack measures the additional cost of an event that packs an object,
// and of a reader that has to unpack it.
func BenchmarkPack(b *testing.B) {
	pod := podOf("web")
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := pack(pod, ignore); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unpack", func(b *testing.B) {
		kept, err := pack(pod, ignore)
		if err != nil {
			b.Fatal(err)
		}
		p := kept.(*packed)
		b.ReportAllocs()
		for b.Loop() {
			p.recent = weak.Pointer[unpacked]{}
			unpack(p)
		}
	})
	b.Run("read", func(b *testing.B) {
		kept, err := pack(pod, ignore)
		if err != nil {
			b.Fatal(err)
		}
		obj := unpack(kept)
		b.ReportAllocs()
		for b.Loop() {
			unpack(kept)
		}
		runtime.KeepAlive(obj)
	})
}
