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
// A control plane that sleeps has no route, no port, no goroutine and no memory
// but its name. Its port for pods is closed.
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
		return nil
	}
	return running.Stop(ctx)
}

// CloseRoute ends the sleep of a control plane that is not to wake by requests:
// connections to it are closed.
func (h *Host) CloseRoute(name string) { h.router.sleepers.remove(serverName(name)) }

// Sleeping returns how many control planes sleep.
func (h *Host) Sleeping() int { return h.router.sleepers.count() }
