package provisioner

import (
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// watchInterval is the interval of checking which limits are reached.
const watchInterval = 2 * time.Second

// limitsOf returns the limits of a control plane: those of its spec, and the
// defaults for the rest.
func limitsOf(spec *tenancyv1alpha1.ControlPlaneSpec, defaults hosted.Limits) hosted.Limits {
	if spec == nil || spec.Limits == nil {
		return defaults
	}
	own, limits := spec.Limits, defaults
	if own.Storage != nil {
		limits.Stored.Bytes = own.Storage.Value()
	}
	if own.Objects != nil {
		limits.Stored.Objects = *own.Objects
	}
	if own.WritesPerSecond != nil {
		limits.Stored.WritesPerSecond = int64(*own.WritesPerSecond)
	}
	if own.WriteBytesPerSecond != nil {
		limits.Stored.WriteBytesPerSecond = own.WriteBytesPerSecond.Value()
	}
	if own.Expressions != nil {
		limits.Expressions = *own.Expressions
	}
	if own.ConcurrentReads != nil {
		limits.Requests.Reads = int(*own.ConcurrentReads)
	}
	if own.ConcurrentWrites != nil {
		limits.Requests.Writes = int(*own.ConcurrentWrites)
	}
	if own.ConcurrentWatches != nil {
		limits.Requests.Watches = int(*own.ConcurrentWatches)
	}
	return limits
}

// apply sets the limits of a control plane if they have changed.
func (p *plane) apply(limits hosted.Limits) {
	if p.limits == limits {
		return
	}
	p.SetLimits(limits)
	p.limits = limits
}

// watchLimits has a VirtualCluster reconciled when its control plane reaches a
// limit or one of its controllers fails, or no longer does.
func (h *Hosted) watchLimits() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case now := <-ticker.C:
			for _, p := range h.running() {
				reached, failing := p.reached.observe(p.Consumption(), now), p.failing.observe(p.FailingControllers())
				if reached || failing {
					h.tell(p.of)
				}
			}
		}
	}
}

// running returns the control planes that were started.
func (h *Hosted) running() []*plane {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*plane, 0, len(h.planes))
	for _, p := range h.planes {
		all = append(all, p)
	}
	return all
}
