package networks

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// handling returns a lane, and reports whether it has been emptied.
func handling(handle func(client.ObjectKey) time.Duration) (l *lane, emptied *atomic.Bool) {
	emptied = &atomic.Bool{}
	return &lane{
		handle:  func(key client.ObjectKey, _ *call) time.Duration { return handle(key) },
		newCall: func() *call { return &call{} }, emptied: func() { emptied.Store(true) },
		mu: &sync.Mutex{}, items: map[client.ObjectKey]*item{},
	}, emptied
}

func (l *lane) addAll(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		l.add(client.ObjectKey{Name: name})
	}
}

// TestALaneHasFewWorkers: of many pods, some are handled at a time, and each one
// at a time.
func TestALaneHasFewWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, handled atomic.Int32
		l, emptied := handling(func(client.ObjectKey) time.Duration {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			handled.Add(1)
			return -1
		})
		for i := range 100 {
			l.addAll(fmt.Sprint(i), fmt.Sprint(i))
		}
		time.Sleep(time.Second * (100/laneWorkers + 1))
		synctest.Wait()
		if most.Load() != laneWorkers || handled.Load() != 100 || !emptied.Load() || l.workers != 0 {
			t.Errorf("%d were handled, %d at a time, and %d workers are left", handled.Load(), most.Load(), l.workers)
		}
	})
}

func TestAPodThatChangesMeanwhileIsHandledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Int32
		l, emptied := handling(func(client.ObjectKey) time.Duration {
			time.Sleep(time.Second)
			handled.Add(1)
			return -1
		})
		l.addAll("web")
		synctest.Wait()
		l.addAll("web", "web")
		time.Sleep(10 * time.Second)
		if handled.Load() != 2 || !emptied.Load() {
			t.Errorf("it was handled %d times", handled.Load())
		}
	})
}

func TestAPodThatWaitsIsHandledLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled atomic.Int32
		l, emptied := handling(func(client.ObjectKey) time.Duration {
			if handled.Add(1) < 3 {
				return time.Minute
			}
			return -1
		})
		l.addAll("web")
		time.Sleep(90 * time.Second)
		if handled.Load() != 2 || emptied.Load() {
			t.Errorf("after a minute: it was handled %d times", handled.Load())
		}
		l.addAll("web")
		time.Sleep(5 * time.Minute)
		if handled.Load() != 3 || !emptied.Load() {
			t.Errorf("after an event: it was handled %d times", handled.Load())
		}
	})
}
