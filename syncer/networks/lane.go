package networks

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// laneWorkers is the maximum number of pods of a network for which its provider
// is called at a time.
const laneWorkers = 4

// lane has the pods of one network that its provider has to be called for. No
// network waits for another one. Its workers end when nothing is left.
type lane struct {
	handle  func(key client.ObjectKey, c *call) (again time.Duration)
	newCall func() *call
	// emptied is called, locked, when no pod is left.
	emptied func()

	mu      *sync.Mutex // of all lanes
	ready   []client.ObjectKey
	items   map[client.ObjectKey]*item
	workers int
}

// item is a pod in a lane.
type item struct {
	call *call
	// queued and busy are set while it waits for a worker, and while it has one.
	// Both are set when it has changed meanwhile.
	queued, busy bool
	// timer adds it again.
	timer *time.Timer
}

// add enqueues a pod, unless it is queued. The caller has locked the lanes.
func (l *lane) add(key client.ObjectKey) {
	i := l.items[key]
	if i == nil {
		i = &item{call: l.newCall()}
		l.items[key] = i
	}
	if i.queued {
		return
	}
	if i.queued = true; !i.busy {
		l.push(key)
	}
}

// push hands a pod to a worker.
func (l *lane) push(key client.ObjectKey) {
	l.ready = append(l.ready, key)
	if l.workers < laneWorkers {
		l.workers++
		go l.work()
	}
}

// work handles pods until none is ready.
func (l *lane) work() {
	for {
		key, i := l.next()
		if i == nil {
			return
		}
		l.done(key, i, l.handle(key, i.call))
	}
}

// next returns the next pod; nil if there is none, and the worker ends.
func (l *lane) next() (client.ObjectKey, *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) == 0 {
		l.ready = nil
		l.workers--
		return client.ObjectKey{}, nil
	}
	key := l.ready[0]
	l.ready = l.ready[1:]
	i := l.items[key]
	i.queued, i.busy = false, true
	if i.timer != nil {
		i.timer.Stop() // it has changed before
	}
	return key, i
}

// done forgets a pod, or enqueues it again: at once if it has changed meanwhile.
func (l *lane) done(key client.ObjectKey, i *item, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i.busy = false
	switch {
	case i.queued:
		l.push(key)
	case again >= 0:
		i.timer = time.AfterFunc(again, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.items[key] == i { // it has not been handled meanwhile
				l.add(key)
			}
		})
	default:
		if delete(l.items, key); len(l.items) == 0 {
			l.emptied()
		}
	}
}
