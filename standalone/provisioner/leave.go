package provisioner

import "context"

// Leave stops a control plane whose data moves to another store, and returns when
// it has stopped. Requests to one that does not sleep are held until the next
// one of its name is ready, in any host of the port.
func (h *Hosted) Leave(ctx context.Context, key string, sleeps bool) error {
	found := h.beginLeave(key)
	if !sleeps {
		if err := h.host.Sleep(ctx, key, func() {}); err != nil {
			return err
		}
	} else if found != nil {
		if err := found.Stop(ctx); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.planes[key] == found {
		delete(h.planes, key)
	}
	return nil
}

// beginLeave returns the control plane, if it was started.
func (h *Hosted) beginLeave(key string) *plane {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.wakes, key)
	found := h.planes[key]
	if found != nil {
		found.stopping = true
	}
	return found
}
