package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

func TestOutcomeName(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"nothing went wrong":   {nil, "synced"},
		"in doubt":             {pending.ErrInDoubt, "in_doubt"},
		"something is missing": {&pending.BlockedError{On: "ServiceAccount web"}, "blocked"},
		"its turn comes later": {queue.ErrNotItsTurn, "waiting"},
		"rejected by the API": {
			pending.Classify(apierrors.NewForbidden(pods, "web", errors.New("exceeded quota"))), "rejected",
		},
		"the syncer's rights": {
			pending.Classify(apierrors.NewForbidden(pods, "web", errors.New(`User "syncer" cannot create resource "pods"`))), "forbidden",
		},
		"another writer": {apierrors.NewConflict(pods, "web", errors.New("another UID")), "conflict"},
		"no answer in time": {
			&url.Error{Op: "Get", URL: "https://super", Err: context.DeadlineExceeded}, "timeout",
		},
		"anything else": {fmt.Errorf("listing: %w", errors.New("connection refused")), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeName(pending.OutcomeOf(tc.err)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func newTestMetrics(t *testing.T) (*Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

func TestQueueMetricsCountWhenTheyAreRead(t *testing.T) {
	m, registry := newTestMetrics(t)
	expect := func(due, longest, inFlight, busy int) {
		t.Helper()
		want := fmt.Sprintf(`
# HELP vc_syncer_queue_busy_tenants Tenants that have objects that wait for a worker or are being worked on.
# TYPE vc_syncer_queue_busy_tenants gauge
vc_syncer_queue_busy_tenants %d
# HELP vc_syncer_queue_longest_lane How many objects are due, waiting for a worker, of the tenant that has most of them.
# TYPE vc_syncer_queue_longest_lane gauge
vc_syncer_queue_longest_lane %d
# HELP vc_syncer_queue_objects Objects in the queue, by state: due, waiting for a worker; paused, due as well, but the tenant does not answer; delayed, to be reconciled later; in_flight, being worked on.
# TYPE vc_syncer_queue_objects gauge
vc_syncer_queue_objects{state="delayed"} 0
vc_syncer_queue_objects{state="due"} %d
vc_syncer_queue_objects{state="in_flight"} %d
vc_syncer_queue_objects{state="paused"} 0
`, busy, longest, due, inFlight)
		err := testutil.GatherAndCompare(registry, strings.NewReader(want),
			"vc_syncer_queue_busy_tenants", "vc_syncer_queue_longest_lane", "vc_syncer_queue_objects")
		if err != nil {
			t.Error(err)
		}
	}
	expect(0, 0, 0, 0) // there is no engine yet
	fair := fairqueue.New(queue.Request.Lane, fairqueue.Options{})
	m.queue.queue.Store(fair)
	fair.Add(queue.Request{Cluster: "red", Kind: "Pod", Key: kindstest.WebKey()})
	fair.Add(queue.Request{Cluster: "blue", Kind: "Pod", Key: kindstest.WebKey()})
	expect(2, 1, 0, 2)
	request, _ := fair.Get()
	expect(1, 1, 1, 2)
	fair.Done(request)
	expect(1, 1, 0, 1)
}

func TestWaitsAreCountedByPriorityAndWeight(t *testing.T) {
	m, registry := newTestMetrics(t)
	fair := fairqueue.New(queue.Request.Lane, fairqueue.Options{Observe: m.observeWait})
	for tenant, weight := range map[string]int32{"two": 2, "nine": 9, "ten": 10, "ninety-nine": 99, "hundred": 100, "thousand": 1000} {
		fair.SetWeight(tenant, weight)
	}
	for _, r := range []struct {
		tenant   multicluster.ClusterName
		priority int
	}{
		{"one", queue.PriorityHigh}, {"one", queue.PriorityHigh + 1}, {"one", queue.PriorityNormal}, {"one", queue.PriorityLow}, {"one", queue.PriorityLow - 1},
		{"two", 0}, {"nine", 0}, {"ten", 0}, {"ninety-nine", 0}, {"hundred", 0}, {"thousand", 0},
	} {
		fair.AddWithOpts(priorityqueue.AddOpts{Priority: &r.priority}, queue.Request{Cluster: r.tenant, Kind: "Pod"})
		request, _ := fair.Get()
		fair.Done(request)
	}
	counts := map[string]uint64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "vc_syncer_queue_wait_seconds" {
			continue
		}
		for _, series := range f.GetMetric() {
			counts[series.GetLabel()[0].GetValue()+" of "+series.GetLabel()[1].GetValue()] = series.GetHistogram().GetSampleCount()
		}
	}
	want := map[string]uint64{
		"high of 1": 2, "normal of 1": 1, "low of 1": 2, "normal of 2 to 9": 2, "normal of 10 to 99": 2, "normal of 100 or more": 2,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestDirectionOf(t *testing.T) {
	for want, sides := range map[string][]string{
		"none": nil, "down": {requests.Super, requests.Super}, "up": {requests.Tenant}, "both": {requests.Tenant, requests.Super},
	} {
		t.Run(want, func(t *testing.T) {
			ctx, sent := requests.Tallied(t.Context())
			for _, side := range sides {
				sendTo(ctx, t, side)
			}
			if got := directionOf(sent); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
