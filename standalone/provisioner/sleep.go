package provisioner

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner/sleep"
)

const (
	// partingTime is how long a control plane that is about to sleep waits until
	// the syncer has closed its watches.
	partingTime = 10 * time.Second
	// workTimeout limits a lookup of unfinished work, and workFresh is how long
	// its result is used.
	workTimeout = 10 * time.Second
	workFresh   = 5 * time.Second
	// wakePatience is how long a control plane that wakes is still said to
	// sleep. One that takes longer is starting.
	wakePatience = 15 * time.Second
	// lifetimeParts: a control plane sleeps a part of the validity of its
	// certificates at most. They are renewed when a third is left.
	lifetimeParts = 6
)

// SleepOptions are the host's defaults of when control planes sleep.
type SleepOptions struct {
	// AfterIdle is the time without use after which a control plane sleeps
	// unless its spec says otherwise; 0 for never.
	AfterIdle time.Duration
	// Metrics counts control planes that sleep and wake; nil for none.
	Metrics *Metrics
}

// wake is a request to wake a control plane, which stands until its status says
// that it is awake.
type wake struct {
	reason string
	since  time.Time
	// done: the control plane is ready.
	done bool
}

// lookup is the result of looking up the unfinished work of a control plane.
type lookup struct {
	running bool
	at      time.Time
	work    *hosted.Work // nil if it failed
}

// decide decides whether a control plane should sleep. The caller holds the
// lock.
func (h *Hosted) decide(vc *tenancyv1alpha1.VirtualCluster, found *plane) sleep.Decision {
	now := time.Now()
	observed := h.observe(vc, found, now)
	decision := sleep.Decide(now, h.policy(vc, now), observed)
	if observed.Ready {
		decision = h.scale(vc, found, observed, decision)
	}
	if decision.NeedsWork && !found.work.running {
		h.lookUp(vc, found)
	}
	return decision
}

// policy returns when a control plane should sleep.
func (h *Hosted) policy(vc *tenancyv1alpha1.VirtualCluster, now time.Time) sleep.Policy {
	validity := cmp.Or(time.Duration(vc.Spec.PKIExpireDays)*day, defaultPKIDays*day)
	policy := sleep.Policy{Paused: vc.Spec.Paused, AfterIdle: h.options.Sleep.AfterIdle, Longest: validity / lifetimeParts}
	if vc.Spec.ControlPlane == nil || vc.Spec.ControlPlane.Sleep == nil {
		return policy
	}
	spec := vc.Spec.ControlPlane.Sleep
	if seconds := spec.AfterIdleSeconds; seconds != nil {
		policy.AfterIdle = time.Duration(*seconds) * time.Second
	}
	policy.Schedule, policy.Invalid = sleep.ParseSchedule(spec.Schedule, now)
	return policy
}

// observe returns what is known of a control plane. The caller holds the lock.
func (h *Hosted) observe(vc *tenancyv1alpha1.VirtualCluster, found *plane, now time.Time) sleep.Observed {
	o := observeStatus(vc, now)
	if requested, ok := h.wakes[vc.Status.ClusterNamespace]; ok && o.Asleep {
		o.Wake = requested.reason
	}
	if found == nil || found.stopping || isClosed(found.Done()) || !isClosed(found.Ready()) {
		return o
	}
	o.Ready, o.Activity = true, found.Activity()
	if now.Sub(found.work.at) < workFresh && !found.work.at.Before(o.Activity.Last) {
		o.Work = found.work.work
	}
	if o.Asleep && o.Reason == tenancyv1alpha1.ReasonIdle && (o.Activity.Open > 0 || o.Activity.Last.After(o.Since)) {
		o.Wake = cmp.Or(o.Wake, tenancyv1alpha1.ReasonConnection) // it was used before it had stopped
	}
	return o
}

// observeStatus returns what the status and the annotations of a VirtualCluster
// say.
func observeStatus(vc *tenancyv1alpha1.VirtualCluster, now time.Time) sleep.Observed {
	o := sleep.Observed{Since: now}
	if awake := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake); awake != nil {
		o.Asleep, o.Reason, o.Since = awake.Status == metav1.ConditionFalse, awake.Reason, awake.LastTransitionTime.Time
	}
	if vc.Status.WakeTime != nil {
		o.WakeTime = vc.Status.WakeTime.Time
	}
	o.WokenAt, _ = time.Parse(time.RFC3339, vc.Annotations[names.WokenAt]) // an invalid time wakes nothing
	syncing := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
	if syncing != nil && syncing.Status == metav1.ConditionTrue {
		o.Synced = syncing.Reason == tenancyv1alpha1.ReasonReady &&
			!meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionSynced)
		if o.Asleep && syncing.Reason == tenancyv1alpha1.ReasonWakeNeeded {
			o.Wake = tenancyv1alpha1.ReasonWakeNeeded
		}
	}
	return o
}

// lookUp looks up the unfinished work of a control plane in the background. The
// caller holds the lock.
func (h *Hosted) lookUp(vc *tenancyv1alpha1.VirtualCluster, of *plane) {
	of.work.running = true
	told := reference(vc)
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, workTimeout)
		defer cancel()
		now := time.Now()
		work, err := of.Work(ctx, now)
		result := lookup{at: now}
		if err == nil {
			result.work = &work
		}
		h.mu.Lock()
		of.work = result
		h.mu.Unlock()
		if err == nil {
			h.tell(told)
		}
	})
}

// ensureAsleep puts a control plane to sleep, once the status says so and the
// syncer has closed its watches. The caller holds the lock.
func (h *Hosted) ensureAsleep(vc *tenancyv1alpha1.VirtualCluster, found *plane, d sleep.Decision) provisioner.ControlPlane {
	key := vc.Status.ClusterNamespace
	delete(h.wakes, key)
	state := provisioner.ControlPlane{Sleep: sleepOf(d), RecheckAfter: until(d.Look)}
	switch runs := found != nil && !isClosed(found.Done()); {
	case runs && !hasParted(vc):
		state.RecheckAfter = earlier(state.RecheckAfter, partingTime)
		return state
	case runs:
		found.stopping = true
		initiateStop(found.ControlPlane)
	default:
		delete(h.planes, key)
	}
	if state.Sleep.Paused {
		h.host.CloseRoute(key)
		return state
	}
	stopped, cancel := context.WithCancel(h.ctx)
	cancel()
	_ = h.host.Sleep(stopped, key, func() { h.woken(key, reference(vc)) }) // it says that it still stops
	return state
}

// hasParted reports whether the syncer has closed its watches because the
// control plane is to sleep, or had the time to.
func hasParted(vc *tenancyv1alpha1.VirtualCluster) bool {
	awake := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
	if awake == nil || awake.Status != metav1.ConditionFalse {
		return false
	}
	syncing := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
	return syncing == nil || time.Since(awake.LastTransitionTime.Time) > partingTime ||
		syncing.Reason == tenancyv1alpha1.ReasonAsleep || syncing.Reason == tenancyv1alpha1.ReasonPaused
}

// woken records that a connection wakes a control plane. It is called by the
// host, which it must not block.
func (h *Hosted) woken(key string, vc *tenancyv1alpha1.VirtualCluster) {
	h.mu.Lock()
	h.wakes[key] = wake{reason: tenancyv1alpha1.ReasonConnection, since: time.Now()}
	h.mu.Unlock()
	h.work.Go(func() { h.tell(vc) })
}

// wakeUp returns the state of a control plane that is to be awake. While it is
// woken, it is still said to sleep: that takes a moment, and is no failure. The
// caller holds the lock.
func (h *Hosted) wakeUp(vc *tenancyv1alpha1.VirtualCluster, state provisioner.ControlPlane, d sleep.Decision) provisioner.ControlPlane {
	key := vc.Status.ClusterNamespace
	sleeps := meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
	requested, waking := h.wakes[key]
	switch {
	case !sleeps:
		delete(h.wakes, key)
	case !waking:
		requested = wake{reason: d.Reason, since: time.Now()}
		h.wakes[key] = requested
	}
	state.Sleep = sleepOf(d)
	state.RecheckAfter = earlier(state.RecheckAfter, until(d.Look))
	if sleeps && !state.Ready && time.Since(requested.since) < wakePatience {
		awake := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
		state.Sleep = &provisioner.Sleep{Asleep: true, Reason: awake.Reason, Message: "The control plane wakes: " + d.Message}
		state.RecheckAfter = wakePatience
	}
	if sleeps && state.Ready && !requested.done {
		requested.done = true
		h.wakes[key] = requested
		h.options.Sleep.Metrics.observeWake(requested.reason, time.Since(requested.since))
	}
	return state
}

// sleepOf returns a decision as the manager reports it.
func sleepOf(d sleep.Decision) *provisioner.Sleep {
	return &provisioner.Sleep{
		Asleep: d.Asleep, Paused: d.Asleep && d.Reason == tenancyv1alpha1.ReasonPaused,
		Reason: d.Reason, Message: d.Message, WakeTime: d.WakeTime,
	}
}

// until returns the time until a moment, at least a little; 0 for never.
func until(moment time.Time) time.Duration {
	if moment.IsZero() {
		return 0
	}
	return max(time.Until(moment), time.Millisecond)
}

// earlier returns the shorter of two delays, of which 0 is none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
