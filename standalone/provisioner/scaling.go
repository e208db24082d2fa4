package provisioner

import (
	"context"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/provisioner/sleep"
)

// scalePatience is how long a control plane waits until the pods of workloads
// that are scaled to zero have ended.
const scalePatience = 2 * time.Minute

// scaleLook is the interval of checking whether they have.
const scaleLook = 2 * time.Second

// scaling is the state of the workloads of a control plane, which are scaled to
// zero while it sleeps, if its spec says so.
type scaling struct {
	running bool
	// since is when scaling to zero began; zero if it has not.
	since time.Time
	// down: all are scaled to zero. up: none is left of an earlier sleep.
	down, up bool
}

// scale scales the workloads of a control plane that is ready before it sleeps,
// and after it woke. It postpones the sleep until that is done. The caller holds
// the lock.
func (h *Hosted) scale(vc *tenancyv1alpha1.VirtualCluster, of *plane, o sleep.Observed, d sleep.Decision) sleep.Decision {
	s, now := &of.scaling, time.Now()
	switch {
	case d.Asleep && o.Asleep, d.Asleep && !scalesToZero(vc):
		return d // its status says already that it sleeps
	case !d.Asleep && !d.Waits:
		if s.running || s.up || s.since.IsZero() && !scalesToZero(vc) && !o.Asleep {
			return d
		}
		s.since, s.down = time.Time{}, false
		h.scaleInBackground(vc, of, of.ScaleUp, func() { s.up = true })
		return d
	case !d.Asleep:
		if !s.since.IsZero() { // pods are ending
			d.Look = now.Add(scaleLook)
		}
		return d
	}
	if s.since.IsZero() {
		s.since, s.up = now, false
	}
	if !s.down && !s.running {
		h.scaleInBackground(vc, of, of.ScaleDown, func() { s.down = true })
	}
	ended := s.down && o.Work != nil && o.Work.Unfinished == ""
	if ended || now.Sub(s.since) > scalePatience {
		return d
	}
	return o.Postponed(now, "its workloads are scaled to zero first")
}

// scaleInBackground scales the workloads, and calls done under the lock if there
// was nothing to scale any more. The caller holds the lock.
func (h *Hosted) scaleInBackground(
	vc *tenancyv1alpha1.VirtualCluster, of *plane, scale func(context.Context) (int, error), done func(),
) {
	of.scaling.running = true
	told := reference(vc)
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, workTimeout)
		defer cancel()
		scaled, err := scale(ctx)
		h.mu.Lock()
		of.scaling.running = false
		of.work = lookup{running: of.work.running}
		if scaled == 0 && err == nil {
			done()
		}
		h.mu.Unlock()
		if err == nil {
			h.tell(told)
		}
	})
}

// scalesToZero reports whether the workloads of a tenant are scaled to zero
// while its control plane sleeps.
func scalesToZero(vc *tenancyv1alpha1.VirtualCluster) bool {
	spec := vc.Spec.ControlPlane
	return spec != nil && spec.Sleep != nil && spec.Sleep.Workloads == tenancyv1alpha1.SleepingWorkloadsScaleToZero
}
