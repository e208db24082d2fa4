package provisioner

import (
	"context"
)

// HandOver stops what of a control plane may run in one process at a time, so
// that another process can run it. An apiserver that is ready serves until
// Retire. If the control plane is ensured before that, it runs here again.
func (h *Hosted) HandOver(ctx context.Context, key string) error {
	found := h.beginHandOver(key)
	h.host.CloseRoute(key)
	switch {
	case found == nil:
		return nil
	case !isClosed(found.Ready()) || found.stopping:
		return found.Stop(ctx)
	}
	return found.StopControllers(ctx)
}

// beginHandOver returns the control plane, if it was started.
func (h *Hosted) beginHandOver(key string) *plane {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.wakes, key)
	found := h.planes[key]
	if found != nil {
		found.handedOver = true
	}
	return found
}

// Retire stops a control plane that was handed over and that another process
// serves by now. It does not wait for it.
func (h *Hosted) Retire(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.planes[key]
	switch {
	case found == nil || !found.handedOver:
	case isClosed(found.Done()):
		delete(h.planes, key)
	default:
		found.stopping = true
		found.Retire()
	}
}

// takeBack has a control plane that was handed over run here again: no other process
// has taken it over. The caller holds the lock.
func takeBack(of *plane) {
	of.handedOver = false
	of.ResumeControllers()
}

// HandedOver returns how many control planes that were handed over have not
// stopped, or have pods that may not know of it.
func (h *Hosted) HandedOver() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for _, p := range h.planes {
		if p.handedOver && !isClosed(p.Done()) {
			count++
		}
	}
	return count + h.host.Left()
}
