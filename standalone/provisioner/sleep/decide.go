// Package sleep decides when a control plane sleeps. It has no state and does
// no I/O.
package sleep

import (
	"fmt"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const (
	// leastNap is the least time for which it is worth to stop a control plane.
	leastNap = 30 * time.Second
	// lead is how long before work is due a control plane wakes, so that its
	// controllers run when it is due.
	lead = 5 * time.Second
	// idleAtNight is the time without use after which a control plane that was
	// woken between a time to sleep and a time to wake sleeps again, if the
	// policy has none.
	idleAtNight = 5 * time.Minute
	// unusedAwake is the same for one that was woken and has not been used since:
	// by an event of the super cluster, or by a connection without a request.
	unusedAwake = time.Minute
	// scheduleGrace is how long unfinished work delays a scheduled sleep.
	scheduleGrace = 10 * time.Minute
	// shortestLook and longestLook bound the interval of checking whether a
	// control plane is still used.
	shortestLook, longestLook = time.Second, 30 * time.Second
)

// Policy is when a control plane should sleep.
type Policy struct {
	// Paused stops the control plane for good.
	Paused bool
	// AfterIdle is the time without use after which it sleeps; 0 for never.
	AfterIdle time.Duration
	// Schedule is when it sleeps and wakes regardless of use.
	Schedule Schedule
	// Invalid is why the spec's schedule cannot be used.
	Invalid error
	// Longest is the most that it may sleep, because its certificates have to be
	// renewed; 0 for no limit.
	Longest time.Duration
}

// Observed is what is known of a control plane.
type Observed struct {
	// Asleep reports whether it sleeps, or is about to, and Reason is why it
	// does, or why it was woken.
	Asleep bool
	Reason string
	// Since is when it fell asleep or was woken.
	Since time.Time
	// WakeTime is when it should wake by itself; zero for never.
	WakeTime time.Time
	// Wake is the reason of a request to wake it; empty without one.
	Wake string
	// WokenAt is when an admin last asked for it to be awake. It may be in the
	// future.
	WokenAt time.Time
	// Ready reports whether it runs and is ready; the fields below are set only
	// then.
	Ready bool
	// Activity is its use.
	Activity hosted.Activity
	// Synced reports whether the syncer has synced all of its objects.
	Synced bool
	// Work is what its controllers have to do; nil if that was not looked up.
	Work *hosted.Work
}

// Decision is whether a control plane should sleep.
type Decision struct {
	Asleep bool
	// Reason and Message are those of the condition Awake.
	Reason, Message string
	// WakeTime is when it should wake by itself; zero for never.
	WakeTime time.Time
	// Look is when to decide again without an event; zero for never.
	Look time.Time
	// Waits: it is to sleep, and is awake until its work is finished.
	Waits bool
	// NeedsWork asks for a decision with Observed.Work.
	NeedsWork bool
}

// Decide decides whether a control plane should sleep.
func Decide(now time.Time, p Policy, o Observed) Decision {
	switch {
	case p.Paused:
		return Decision{
			Asleep: true, Reason: tenancyv1alpha1.ReasonPaused,
			Message: "The control plane is stopped until spec.paused is false; the tenant's pods run on",
		}
	case o.Asleep:
		return p.decideAsleep(now, o)
	default:
		return p.decideAwake(now, o)
	}
}

// decideAsleep decides whether a control plane that sleeps should wake.
func (p Policy) decideAsleep(now time.Time, o Observed) Decision {
	wake := ""
	switch {
	case o.Wake != "":
		wake = o.Wake
	case !o.WokenAt.IsZero() && !o.WokenAt.Before(o.Since):
		wake = tenancyv1alpha1.ReasonRequested
	case !p.Schedule.lastAwake(o.Since, now).IsZero():
		wake = tenancyv1alpha1.ReasonSchedule
	case !p.allows(now, o.Reason):
		wake = tenancyv1alpha1.ReasonResumed
	case !o.WakeTime.IsZero() && !now.Before(o.WakeTime):
		wake = tenancyv1alpha1.ReasonWorkDue
	}
	if wake != "" {
		return Decision{Reason: wake, Message: messageOf(wake)}
	}
	return asleep(o.Reason, earliest(o.WakeTime, p.Schedule.nextAwake(now)))
}

// allows reports whether a control plane may continue to sleep for a reason.
func (p Policy) allows(now time.Time, reason string) bool {
	switch reason {
	case tenancyv1alpha1.ReasonIdle:
		return p.afterIdle(now) > 0
	case tenancyv1alpha1.ReasonSchedule:
		return p.Schedule.asleep != nil
	default: // Paused, but no longer
		return false
	}
}

// messageOf returns the message of a control plane that is awake for a reason;
// empty if that is not one.
func messageOf(reason string) string {
	switch reason {
	case tenancyv1alpha1.ReasonAwake:
		return "The control plane has not slept since it was started"
	case tenancyv1alpha1.ReasonConnection:
		return "A connection woke the control plane"
	case tenancyv1alpha1.ReasonWakeNeeded:
		return "A change in the super cluster, which the tenant has to see, woke the control plane"
	case tenancyv1alpha1.ReasonWorkDue:
		return "A CronJob, a Job that expires or a certificate woke the control plane"
	case tenancyv1alpha1.ReasonRequested:
		return "An admin woke the control plane"
	case tenancyv1alpha1.ReasonSchedule:
		return "spec.controlPlane.sleep.schedule woke the control plane"
	case tenancyv1alpha1.ReasonResumed:
		return "The control plane is not to sleep any more"
	default:
		return ""
	}
}

// asleep returns the decision to sleep until a time, if it is not zero.
func asleep(reason string, until time.Time) Decision {
	why := "was not used"
	if reason == tenancyv1alpha1.ReasonSchedule {
		why = "is scheduled to sleep"
	}
	return Decision{
		Asleep: true, Reason: reason, WakeTime: until, Look: until,
		Message: "The control plane " + why + ", so it sleeps; a request wakes it, and the tenant's pods run on",
	}
}

// decideAwake decides whether a control plane that runs should sleep.
func (p Policy) decideAwake(now time.Time, o Observed) Decision {
	stay := p.awake(o)
	if !o.Ready {
		return stay
	}
	scheduled := p.Schedule.lastAsleep(o.Since, now)
	if !scheduled.IsZero() && o.WokenAt.Before(scheduled) {
		return p.sleep(now, o, stay, tenancyv1alpha1.ReasonSchedule, now.Sub(scheduled) > scheduleGrace)
	}
	stay.Look = p.Schedule.nextAsleep(now)
	after := p.afterIdle(now)
	if after == 0 {
		return stay
	}
	if o.Activity.Last.IsZero() && mayBeUnused(o.Reason) {
		after = min(after, unusedAwake)
	}
	look := now.Add(min(max(after/4, shortestLook), longestLook))
	idle := latest(o.Activity.Last, o.Activity.Ready, o.WokenAt).Add(after)
	switch {
	case o.Activity.Open > 0:
	case now.Before(idle):
		look = idle
	default:
		decision := p.sleep(now, o, stay, tenancyv1alpha1.ReasonIdle, false)
		if decision.Asleep || o.Work == nil {
			return decision
		}
		stay = decision
	}
	stay.Look = earliest(stay.Look, look)
	return stay
}

// mayBeUnused reports whether a control plane that was woken for a reason may
// not be used at all.
func mayBeUnused(reason string) bool {
	switch reason {
	case tenancyv1alpha1.ReasonConnection, tenancyv1alpha1.ReasonWakeNeeded, tenancyv1alpha1.ReasonWorkDue:
		return true
	default:
		return false
	}
}

// sleep returns the decision to sleep for a reason or, if there is unfinished
// work, to stay awake. The work does not matter if it was waited for.
func (p Policy) sleep(now time.Time, o Observed, stay Decision, reason string, waited bool) Decision {
	next := p.Schedule.nextAwake(now)
	stay.Look, stay.Waits = now.Add(longestLook), true
	switch {
	case o.Work == nil:
		stay.NeedsWork = true
		return stay
	case !waited && !o.Synced:
		return stay.because("the syncer has not synced all objects")
	case !waited && o.Work.Unfinished != "":
		return stay.because(o.Work.Unfinished)
	}
	if due := o.Work.Due; !due.IsZero() {
		next = earliest(next, due.Add(-lead))
	}
	if !next.IsZero() && next.Sub(now) < leastNap {
		return stay.because("work is about to be due")
	}
	if p.Longest > 0 {
		next = earliest(next, now.Add(p.Longest))
	}
	return asleep(reason, next)
}

// because adds what keeps a control plane awake that would sleep.
func (d Decision) because(what string) Decision {
	d.Message += "; it is not used, but does not sleep yet: " + what
	return d
}

// Postponed returns the decision to stay awake for the same reason as before,
// until something is done.
func (o Observed) Postponed(now time.Time, what string) Decision {
	stay := Policy{}.awake(o)
	stay.Look, stay.Waits, stay.NeedsWork = now.Add(shortestLook), true, o.Work == nil
	return stay.because(what)
}

// awake returns the decision to stay awake.
func (p Policy) awake(o Observed) Decision {
	if p.Invalid != nil {
		return Decision{
			Reason:  tenancyv1alpha1.ReasonInvalidSchedule,
			Message: fmt.Sprintf("The control plane does not sleep by spec.controlPlane.sleep.schedule: %s", p.Invalid),
		}
	}
	reason := o.Reason
	if messageOf(reason) == "" {
		reason = tenancyv1alpha1.ReasonAwake
	}
	return Decision{Reason: reason, Message: messageOf(reason)}
}

// afterIdle returns the time without use after which a control plane sleeps
// now; 0 for never.
func (p Policy) afterIdle(now time.Time) time.Duration {
	if p.AfterIdle == 0 && !p.Schedule.lastAsleep(now.Add(-longestGap), now).IsZero() {
		return idleAtNight
	}
	return p.AfterIdle
}

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func latest(all ...time.Time) (last time.Time) {
	for _, t := range all {
		if t.After(last) {
			last = t
		}
	}
	return last
}
