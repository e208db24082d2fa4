package provider

import "sync"

// work counts what is being done for a tenant, so that its end can be waited for. The zero value is not ready; see newWork.
type work struct {
	mu      sync.Mutex
	running int
	ended   bool
	done    chan struct{}
}

func newWork() *work { return &work{done: make(chan struct{})} }

// begin says whether something may begin. If so, finish has to be called when it has ended.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.running++
	return true
}

// finish notes that something has ended.
func (w *work) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.lockedClose()
}

// end has nothing begin any more, and returns what is closed when all has ended. It can be called again.
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
