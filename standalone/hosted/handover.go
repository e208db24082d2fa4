package hosted

import (
	"context"
	"fmt"
	"net"
)

// StopControllers stops the controllers of a control plane, so that another host
// can run them, and returns when they have stopped or ctx ends. The apiserver
// serves until Retire or Stop. It is of no use before the control plane is ready.
func (c *ControlPlane) StopControllers(ctx context.Context) error {
	c.handOver.Do(func() { close(c.parting) })
	select {
	case <-c.alone:
		return nil
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the controllers of control plane %q are still stopping: %w", c.spec.Name, context.Cause(ctx))
	}
}

// Retire stops a control plane that another host serves by now, and does not wait
// for it. Connections that are opened from now on are passed on to that host;
// requests in flight are finished.
func (c *ControlPlane) Retire() {
	c.closeRoute()
	c.cancel()
}

// draining is an inlet whose Close leaves its connections open, so that the
// server finishes the requests in flight.
type draining struct{ *inlet }

var _ net.Listener = draining{}

// Close implements net.Listener.
func (d draining) Close() error { return d.refuse() }
