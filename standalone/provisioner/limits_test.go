package provisioner

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

const mebi = 1 << 20

func defaults() hosted.Limits {
	return hosted.Limits{
		Stored:   quota.Limits{Bytes: 64 * mebi, Objects: 1000, WritesPerSecond: 100, WriteBytesPerSecond: mebi},
		Requests: inflight.Limits{Reads: 10, Writes: 20, Watches: 30}, Expressions: 50,
	}
}

func TestLimitsOf(t *testing.T) {
	changed := func(change func(*hosted.Limits)) hosted.Limits {
		limits := defaults()
		change(&limits)
		return limits
	}
	two := resource.MustParse("2Mi")
	for name, test := range map[string]struct {
		spec *tenancyv1alpha1.ControlPlaneSpec
		want hosted.Limits
	}{
		"no spec":   {nil, defaults()},
		"no limits": {&tenancyv1alpha1.ControlPlaneSpec{}, defaults()},
		"empty":     {&tenancyv1alpha1.ControlPlaneSpec{Limits: &tenancyv1alpha1.ControlPlaneLimits{}}, defaults()},
		"one": {
			&tenancyv1alpha1.ControlPlaneSpec{Limits: &tenancyv1alpha1.ControlPlaneLimits{ConcurrentReads: new(int32(7))}},
			changed(func(l *hosted.Limits) { l.Requests.Reads = 7 }),
		},
		"all": {
			&tenancyv1alpha1.ControlPlaneSpec{Limits: &tenancyv1alpha1.ControlPlaneLimits{
				Storage: &two, Objects: new(int64(1)), Expressions: new(int64(6)), WritesPerSecond: new(int32(2)), WriteBytesPerSecond: &two,
				ConcurrentReads: new(int32(3)), ConcurrentWrites: new(int32(4)), ConcurrentWatches: new(int32(5)),
			}},
			hosted.Limits{
				Stored:   quota.Limits{Bytes: 2 * mebi, Objects: 1, WritesPerSecond: 2, WriteBytesPerSecond: 2 * mebi},
				Requests: inflight.Limits{Reads: 3, Writes: 4, Watches: 5}, Expressions: 6,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limitsOf(test.spec, defaults()); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// rejecting returns a control plane whose requests were rejected for a reason.
func rejecting(reason inflight.Reason, times int64) hosted.Consumption {
	return hosted.Consumption{Requests: inflight.Usage{
		Limits: defaults().Requests, Bytes: 20 * mebi, Rejected: map[inflight.Reason]int64{reason: times},
	}}
}

func TestReachedLimits(t *testing.T) {
	for name, test := range map[string]struct {
		is           hosted.Consumption
		reason, text string
	}{
		"nothing":   {hosted.Consumption{}, "", ""},
		"no limits": {hosted.Consumption{Stored: quota.Usage{Bytes: 1, Objects: 1}}, "", ""},
		"below": {
			hosted.Consumption{Limits: defaults().Stored, Stored: quota.Usage{Bytes: 64*mebi - 1, Objects: 999}}, "", "",
		},
		"full": {
			hosted.Consumption{Limits: defaults().Stored, Stored: quota.Usage{Bytes: 64 * mebi, Objects: 5}},
			tenancyv1alpha1.ReasonStorageLimitReached, "64Mi of 64Mi and 5 of 1000 objects are stored",
		},
		"more than a lowered limit": {
			hosted.Consumption{Limits: quota.Limits{Objects: 10}, Stored: quota.Usage{Objects: 50}},
			tenancyv1alpha1.ReasonStorageLimitReached, "50 of 10 objects",
		},
		"a write that does not fit": {
			hosted.Consumption{Limits: defaults().Stored, Rejected: map[quota.Reason]int64{quota.ReasonStorage: 1}},
			tenancyv1alpha1.ReasonStorageLimitReached, "0 of 64Mi",
		},
		"expressions that do not fit": {
			hosted.Consumption{Expressions: expressions.Usage{Used: 49, Limit: 50, Rejected: 1}},
			tenancyv1alpha1.ReasonExpressionLimitReached, "as much work as 49 of the usual length, of 50",
		},
		"fast writes": {
			hosted.Consumption{Limits: defaults().Stored, Rejected: map[quota.Reason]int64{quota.ReasonPace: 1}},
			tenancyv1alpha1.ReasonWritesThrottled, "100 times or 1Mi a second",
		},
		"a full store of the platform": {hosted.Consumption{Rejected: map[quota.Reason]int64{quota.ReasonStore: 1}}, "", ""},
		"reads":                        {rejecting(inflight.ReasonReads, 1), tenancyv1alpha1.ReasonRequestsThrottled, "of the kind read were in flight than the limit of 10"},
		"writes":                       {rejecting(inflight.ReasonWrites, 1), tenancyv1alpha1.ReasonRequestsThrottled, "of the kind write were in flight than the limit of 20"},
		"watches":                      {rejecting(inflight.ReasonWatches, 1), tenancyv1alpha1.ReasonRequestsThrottled, "of the kind watch were in flight than the limit of 30"},
		"calls of webhooks":            {rejecting(inflight.ReasonWebhooks, 1), tenancyv1alpha1.ReasonRequestsThrottled, "of the kind webhook were in flight than the limit of 20"},
		"memory":                       {rejecting(inflight.ReasonMemory, 1), tenancyv1alpha1.ReasonRequestsThrottled, "which take 20Mi"},
		"long selectors":               {rejecting(inflight.ReasonHeads, 1), tenancyv1alpha1.ReasonRequestsThrottled, "URLs, headers and selectors"},
		"other clusters' requests":     {rejecting(inflight.ReasonHost, 1), "", ""},
		"pressure":                     {rejecting(inflight.ReasonPressure, 1), tenancyv1alpha1.ReasonMemoryPressure, "take the most, 20Mi"},
		"pressure, requests wait":      {hosted.Consumption{Requests: inflight.Usage{Shed: true}}, tenancyv1alpha1.ReasonMemoryPressure, "short of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			var r reachedLimits
			if changed := r.observe(test.is, time.Now()); changed != (test.reason != "") {
				t.Errorf("changed: %t", changed)
			}
			if got := r.report(); got.Reached != test.reason || !strings.Contains(got.Message, test.text) || (got.Message == "") != (test.text == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestRejectionsAreReportedOnce for a time, not each.
func TestRejectionsAreReportedOnce(t *testing.T) {
	now := time.Now()
	r := reachedLimits{last: rejecting(inflight.ReasonReads, 5)}
	for i, step := range []struct {
		after    time.Duration
		is       hosted.Consumption
		changed  bool
		reported string
	}{
		{0, rejecting(inflight.ReasonReads, 5), false, ""}, // before its restart
		{time.Second, rejecting(inflight.ReasonReads, 6), true, tenancyv1alpha1.ReasonRequestsThrottled},
		{calm, rejecting(inflight.ReasonReads, 99), false, tenancyv1alpha1.ReasonRequestsThrottled},
		{2 * calm, rejecting(inflight.ReasonReads, 99), false, tenancyv1alpha1.ReasonRequestsThrottled},
		{2*calm + time.Second, rejecting(inflight.ReasonReads, 99), true, ""},
		{3 * calm, rejecting(inflight.ReasonReads, 99), false, ""},
	} {
		if changed := r.observe(step.is, now.Add(step.after)); changed != step.changed {
			t.Errorf("step %d: changed is %t", i, changed)
		}
		if got := r.report().Reached; got != step.reported {
			t.Errorf("step %d: got %q, want %q", i, got, step.reported)
		}
	}
}

// TestSeveralLimits: the most important is the reason, and all are described.
func TestSeveralLimits(t *testing.T) {
	now := time.Now()
	is := rejecting(inflight.ReasonReads, 1)
	var r reachedLimits
	r.observe(is, now)
	is.Limits, is.Stored = defaults().Stored, quota.Usage{Objects: 1000}
	if !r.observe(is, now) {
		t.Error("a second limit is not reported")
	}
	got := r.report()
	if got.Reached != tenancyv1alpha1.ReasonStorageLimitReached || strings.Count(got.Message, ";") != 1 {
		t.Errorf("got %+v", got)
	}
	is.Stored.Objects = 1
	if !r.observe(is, now.Add(2*calm)) || *r.report() != (provisioner.Limits{}) {
		t.Errorf("when both are over: %+v", r.report())
	}
}
