package hosted

import (
	"context"
	"fmt"
)

// Sleep stops a control plane, if it runs, and keeps its name. The next request
// to the name with credentials of the control plane is held and calls wake,
// which must not block. Run wakes the control plane; when it is ready, it serves
// the requests that waited. If the context ends before the control plane has
// stopped, the stop continues.
//
// A control plane that sleeps has no route and no memory but its name, and its
// port for pods: a socket and the goroutine that accepts connections. That of a
// control plane that has not run since the start of the host is opened again if
// the host knows its number.
func (h *Host) Sleep(ctx context.Context, name string, wake func()) error {
	if err := validateName(name); err != nil {
		return err
	}
	if name == h.opts.Super || name == h.opts.Default {
		return fmt.Errorf("control plane %q cannot sleep: others need it", name)
	}
	// Registered first: a connection in between is held instead of closed.
	h.router.sleepers.add(serverName(name), wake)
	running, ok := h.Get(name)
	if !ok {
		h.pods.reopen(name)
		return nil
	}
	return running.Stop(ctx)
}

// CloseRoute ends the sleep of a control plane that is not to wake by requests:
// connections to it are closed, and so is its port for pods, if it does not run.
func (h *Host) CloseRoute(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.router.sleepers.remove(serverName(name))
	if _, runs := h.planes[name]; !runs {
		h.pods.close(name)
	}
}

// Sleeping returns how many control planes sleep.
func (h *Host) Sleeping() int { return h.router.sleepers.count() }
