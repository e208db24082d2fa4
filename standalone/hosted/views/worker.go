package views

import (
	"slices"
	"sync"
)

// worker refreshes the views of a tenant one after the other, in a goroutine
// that exists only while there are changes.
type worker struct {
	spawn func(run func()) bool

	mu      sync.Mutex
	queue   []*view
	running bool
}

func (w *worker) schedule(v *view) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.queue, v) {
		return
	}
	w.queue = append(w.queue, v)
	if !w.running {
		w.running = w.spawn(w.run)
	}
}

func (w *worker) run() {
	for v := w.next(); v != nil; v = w.next() {
		v.refresh()
	}
}

func (w *worker) next() *view {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue, w.running = nil, false
		return nil
	}
	v := w.queue[0]
	w.queue = w.queue[1:]
	return v
}
