package sleep

import (
	"errors"
	"strings"
	"testing"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// now is a Monday, noon.
var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// nights is a schedule of sleep from 20:00 to 07:00.
func nights(t *testing.T) Schedule {
	t.Helper()
	return schedule(t, &tenancyv1alpha1.SleepSchedule{Asleep: "0 20 * * *", Awake: "0 7 * * *"})
}

func schedule(t *testing.T, spec *tenancyv1alpha1.SleepSchedule) Schedule {
	t.Helper()
	s, err := ParseSchedule(spec, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unused returns what is known of a control plane that runs, has not been used
// for a time, and has no work.
func unused(d time.Duration) Observed {
	return Observed{
		Reason: tenancyv1alpha1.ReasonAwake, Since: ago(10 * time.Hour), Ready: true, Synced: true,
		Activity: hosted.Activity{Ready: ago(10 * time.Hour), Last: ago(d)}, Work: &hosted.Work{},
	}
}

func with(o Observed, change func(*Observed)) Observed {
	change(&o)
	return o
}

// slept returns what is known of a control plane that fell asleep a time ago.
func slept(d time.Duration, reason string) Observed {
	return Observed{Asleep: true, Reason: reason, Since: ago(d)}
}

func TestAwake(t *testing.T) {
	halfHour := Policy{AfterIdle: 30 * time.Minute}
	for name, tc := range map[string]struct {
		policy   Policy
		observed Observed
		asleep   bool
		reason   string
		message  string // a part of it
		needs    bool
		look     time.Time
		wake     time.Time
	}{
		"never sleeps":      {Policy{}, unused(9 * time.Hour), false, "Awake", "", false, time.Time{}, time.Time{}},
		"is starting":       {halfHour, Observed{Since: now}, false, "Awake", "", false, time.Time{}, time.Time{}},
		"was used":          {halfHour, unused(time.Minute), false, "Awake", "", false, now.Add(29 * time.Minute), time.Time{}},
		"was used long ago": {halfHour, unused(time.Hour), true, "Idle", "was not used", false, time.Time{}, time.Time{}},
		"became ready": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Activity.Ready = ago(time.Minute) }),
			false, "Awake", "", false, now.Add(29 * time.Minute), time.Time{},
		},
		"has an open watch": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Activity.Open = 1 }),
			false, "Awake", "", false, now.Add(longestLook), time.Time{},
		},
		"work is unknown": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Work = nil }),
			false, "Awake", "", true, now.Add(longestLook), time.Time{},
		},
		"has work": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Work.Unfinished = "Job a/b runs" }),
			false, "Awake", "Job a/b runs", false, now.Add(longestLook), time.Time{},
		},
		"is not synced": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Synced = false }),
			false, "Awake", "not synced", false, now.Add(longestLook), time.Time{},
		},
		"work is due soon": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Work.Due = now.Add(30 * time.Second) }),
			false, "Awake", "about to be due", false, now.Add(longestLook), time.Time{},
		},
		"work is due later": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.Work.Due = now.Add(time.Hour) }),
			true, "Idle", "", false, now.Add(time.Hour - lead), now.Add(time.Hour - lead),
		},
		"certificates expire": {
			Policy{AfterIdle: time.Minute, Longest: 24 * time.Hour}, unused(time.Hour),
			true, "Idle", "", false, now.Add(24 * time.Hour), now.Add(24 * time.Hour),
		},
		"an admin asked a minute ago": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.WokenAt = ago(time.Minute) }),
			false, "Awake", "", false, now.Add(29 * time.Minute), time.Time{},
		},
		"an admin wants it for an hour": {
			halfHour, with(unused(time.Hour), func(o *Observed) { o.WokenAt = now.Add(time.Hour) }),
			false, "Awake", "", false, now.Add(90 * time.Minute), time.Time{},
		},
		"woken by a connection, and not used": {
			halfHour, with(unused(0), func(o *Observed) {
				o.Reason, o.Activity = "Connection", hosted.Activity{Ready: ago(2 * time.Minute)}
			}),
			true, "Idle", "", false, time.Time{}, time.Time{},
		},
		"woken by an admin, and not used": {
			halfHour, with(unused(0), func(o *Observed) {
				o.Reason, o.Activity = "Requested", hosted.Activity{Ready: ago(2 * time.Minute)}
			}),
			false, "Requested", "", false, now.Add(28 * time.Minute), time.Time{},
		},
		"woken by a connection, and used": {
			halfHour, with(unused(2*time.Minute), func(o *Observed) { o.Reason = "Connection" }),
			false, "Connection", "A connection", false, now.Add(28 * time.Minute), time.Time{},
		},
		"paused":            {Policy{Paused: true}, unused(0), true, "Paused", "spec.paused", false, time.Time{}, time.Time{}},
		"paused while idle": {Policy{Paused: true}, slept(time.Hour, "Idle"), true, "Paused", "", false, time.Time{}, time.Time{}},
		"a schedule that is not valid": {
			Policy{Invalid: errors.New("it never comes")}, unused(time.Hour),
			false, "InvalidSchedule", "it never comes", false, time.Time{}, time.Time{},
		},
		"a schedule that is not valid, and idle": {
			Policy{AfterIdle: time.Minute, Invalid: errors.New("it never comes")}, unused(time.Hour),
			true, "Idle", "", false, time.Time{}, time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.observed.Work != nil { // the table shares nothing
				tc.observed.Work = new(*tc.observed.Work)
			}
			got := Decide(now, tc.policy, tc.observed)
			if got.Asleep != tc.asleep || got.Reason != tc.reason || got.NeedsWork != tc.needs || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v", got)
			}
			if !got.Look.Equal(tc.look) || !got.WakeTime.Equal(tc.wake) {
				t.Errorf("looks at %s, wakes at %s, want %s, %s", got.Look, got.WakeTime, tc.look, tc.wake)
			}
		})
	}
}

func TestAsleep(t *testing.T) {
	idle := Policy{AfterIdle: time.Hour}
	for name, tc := range map[string]struct {
		policy   Policy
		observed Observed
		want     string // the reason to wake; empty if it sleeps on
	}{
		"sleeps on":                     {idle, slept(time.Hour, "Idle"), ""},
		"a connection":                  {idle, with(slept(time.Hour, "Idle"), func(o *Observed) { o.Wake = "Connection" }), "Connection"},
		"an admin, later":               {idle, with(slept(time.Hour, "Idle"), func(o *Observed) { o.WokenAt = ago(time.Minute) }), "Requested"},
		"an admin, before":              {idle, with(slept(time.Hour, "Idle"), func(o *Observed) { o.WokenAt = ago(2 * time.Hour) }), ""},
		"work is due":                   {idle, with(slept(time.Hour, "Idle"), func(o *Observed) { o.WakeTime = now }), "WorkDue"},
		"work is due later":             {idle, with(slept(time.Hour, "Idle"), func(o *Observed) { o.WakeTime = now.Add(1) }), ""},
		"not to sleep any more":         {Policy{}, slept(time.Hour, "Idle"), "Resumed"},
		"not paused any more":           {idle, slept(time.Hour, "Paused"), "Resumed"},
		"a schedule that was removed":   {idle, slept(time.Hour, "Schedule"), "Resumed"},
		"the schedule wakes":            {Policy{Schedule: nights(t)}, slept(14*time.Hour, "Schedule"), "Schedule"},
		"the schedule wakes idle ones":  {Policy{AfterIdle: time.Hour, Schedule: nights(t)}, slept(14*time.Hour, "Idle"), "Schedule"},
		"idle since the schedule woke":  {Policy{AfterIdle: time.Hour, Schedule: nights(t)}, slept(time.Hour, "Idle"), ""},
		"scheduled, nothing wakes":      {Policy{Schedule: schedule(t, &tenancyv1alpha1.SleepSchedule{Asleep: "0 20 * * *"})}, slept(14*time.Hour, "Schedule"), ""},
		"paused, with a request":        {Policy{Paused: true}, with(slept(time.Hour, "Idle"), func(o *Observed) { o.Wake = "Connection" }), ""},
		"a schedule that became faulty": {Policy{Invalid: errors.New("never")}, slept(time.Hour, "Schedule"), "Resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(now, tc.policy, tc.observed)
			if got.Asleep != (tc.want == "") || tc.want != "" && got.Reason != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// TestANight takes a control plane through a scheduled night.
func TestANight(t *testing.T) {
	p := Policy{Schedule: nights(t)}
	at := func(hour, minute int) time.Time { return time.Date(2026, 3, 2, hour, minute, 0, 0, time.UTC) }
	day := with(unused(0), func(o *Observed) { o.Since, o.Activity.Open = at(7, 0), 3 })

	expect := func(now time.Time, o Observed, asleep bool, reason string) Decision {
		t.Helper()
		got := Decide(now, p, o)
		if got.Asleep != asleep || got.Reason != reason {
			t.Fatalf("at %s: got %+v", now, got)
		}
		return got
	}
	if d := expect(at(19, 59), day, false, "Awake"); !d.Look.Equal(at(20, 0)) {
		t.Errorf("looks at %s", d.Look)
	}
	if d := expect(at(20, 0), day, true, "Schedule"); !d.WakeTime.Equal(at(31, 0)) {
		t.Errorf("wakes at %s", d.WakeTime)
	}
	busy := with(day, func(o *Observed) { o.Work = &hosted.Work{Unfinished: "Job a/b runs"} })
	expect(at(20, 5), busy, false, "Awake")
	expect(at(20, 11), busy, true, "Schedule")
	asked := with(day, func(o *Observed) { o.WokenAt = at(22, 0) })
	expect(at(20, 0), asked, false, "Awake")

	// A request at midnight wakes it, and it sleeps again soon.
	woken := with(day, func(o *Observed) {
		o.Reason, o.Since = "Connection", at(24, 0)
		o.Activity = hosted.Activity{Ready: at(24, 0), Last: at(24, 1)}
	})
	expect(at(24, 5), woken, false, "Connection")
	expect(at(24, 6), woken, true, "Idle")
	asleep := Observed{Asleep: true, Reason: "Idle", Since: at(24, 6)}
	expect(at(30, 59), asleep, true, "Idle")
	expect(at(31, 0), asleep, false, "Schedule")
	morning := with(day, func(o *Observed) { o.Reason, o.Since, o.Activity.Open = "Schedule", at(31, 0), 0 })
	expect(at(40, 0), morning, false, "Schedule")

	// A process that did not run in the evening does not make up for it.
	expect(at(32, 0), day, false, "Awake")
}
