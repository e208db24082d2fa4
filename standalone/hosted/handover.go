package hosted

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// StopControllers stops the controllers of a control plane, so that another host
// can run them, and returns when they have stopped or ctx ends. The apiserver
// serves until Retire or Stop. It is of no use before the control plane is ready.
func (c *ControlPlane) StopControllers(ctx context.Context) error {
	select {
	case <-c.duty.end():
		return nil
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the controllers of control plane %q are still stopping: %w", c.spec.Name, context.Cause(ctx))
	}
}

// ResumeControllers starts the controllers again that StopControllers has stopped,
// since no other host runs them. It does not wait for them.
func (c *ControlPlane) ResumeControllers() { c.duty.resume() }

// Retire stops a control plane that another host serves by now, and does not wait
// for it. Connections that are opened from now on are passed on to that host;
// requests in flight are finished. That includes connections of pods, for a while,
// since they learn of the other host later.
func (c *ControlPlane) Retire() {
	c.retired.Store(true)
	c.closeRoute()
	c.cancel()
}

// duty is whether the controllers of a control plane run in this host.
type duty struct {
	// changed has the owner of the controllers look.
	changed chan struct{}

	mu sync.Mutex
	// ended is closed by the owner when the controllers have stopped; nil while
	// they are to run.
	ended chan struct{}
}

func newDuty() *duty { return &duty{changed: make(chan struct{}, 1)} }

// end has the controllers stopped. The channel is closed when they have.
func (d *duty) end() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = make(chan struct{})
		d.notify()
	}
	return d.ended
}

// resume has the controllers started.
func (d *duty) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = nil
	d.notify()
}

func (d *duty) notify() {
	select {
	case d.changed <- struct{}{}:
	default: // the change before was not seen yet
	}
}

// report returns whether the controllers are to run. If they are not, it records
// that they have stopped by calling stop first.
func (d *duty) report(stop func()) (run bool) {
	d.mu.Lock()
	ended := d.ended
	d.mu.Unlock()
	if ended == nil {
		return true
	}
	stop()
	select {
	case <-ended:
	default:
		close(ended)
	}
	return false
}

// shift runs the controllers of a control plane while they have duty.
type shift struct {
	start   func() (manager, error)
	running manager // nil while they have none
}

// follow starts or stops the controllers after a change of their duty.
func (s *shift) follow(d *duty) (err error) {
	if d.report(s.stop) && s.running == nil {
		s.running, err = s.start()
	}
	return err
}

// stop stops the controllers if they run.
func (s *shift) stop() {
	if s.running != nil {
		s.running.Stop()
		s.running = nil
	}
}

// failed receives an error of the controllers that ends the control plane.
func (s *shift) failed() <-chan error {
	if s.running == nil {
		return nil
	}
	return s.running.Failed()
}

// draining is an inlet whose Close leaves its connections open, so that the
// server finishes the requests in flight.
type draining struct{ *inlet }

var _ net.Listener = draining{}

// Close implements net.Listener.
func (d draining) Close() error { return d.refuse() }
