package provider

import "sync"

// work counts the work in progress for a tenant, to wait for its end. The zero
// value is not ready to use; see newWork.
type work struct {
	mu      sync.Mutex
	running int
	ended   bool
	done    chan struct{}
}

func newWork() *work { return &work{done: make(chan struct{})} }

// begin reports whether work may begin. If so, finish has to be called at its
// end.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.running++
	return true
}

// finish records that work has ended.
func (w *work) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.lockedClose()
}

// end prevents new work, and returns a channel that is closed when all work has
// ended. It may be called repeatedly.
func (w *work) end() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		w.lockedClose()
	}
	return w.done
}

func (w *work) lockedClose() {
	if w.ended && w.running == 0 {
		close(w.done)
	}
}
