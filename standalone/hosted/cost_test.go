package hosted_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// BenchmarkIdleControlPlanes tells what one more idle control plane costs.
// Run it with -benchtime 1x.
func BenchmarkIdleControlPlanes(b *testing.B) {
	for _, count := range []int{5, 10} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for range b.N {
				measure(b, count)
			}
		})
	}
}

func measure(b *testing.B, count int) {
	baseHeap, baseGoroutines := footprint()
	planes := make([]*hosted.ControlPlane, 0, count)
	begin := time.Now()
	for i := range count {
		plane, err := shared.Run(hosted.Spec{Name: fmt.Sprintf("idle-%d", i)})
		if err != nil {
			b.Fatal(err)
		}
		<-plane.Ready()
		planes = append(planes, plane)
	}
	ready := time.Since(begin)
	heap, goroutines := footprint()
	begin = time.Now()
	for _, plane := range planes {
		if err := plane.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(ready.Seconds()/float64(count), "s-to-ready/plane")
	b.ReportMetric(time.Since(begin).Seconds()/float64(count), "s-to-stop/plane")
	b.ReportMetric((heap-baseHeap)/float64(count)/(1<<20), "heap-MB/plane")
	b.ReportMetric((goroutines-baseGoroutines)/float64(count), "goroutines/plane")
}

// footprint waits for things to settle and returns the bytes of live heap and
// the number of goroutines.
func footprint() (heap, goroutines float64) {
	for still := settled(); !still(); {
		time.Sleep(time.Second)
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(runtime.NumGoroutine())
}
