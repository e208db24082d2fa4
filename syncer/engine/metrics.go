package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/patrol"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// Labels with the name of a kind, and with the outcome of a reconcile.
const (
	kindLabel    = "kind"
	outcomeLabel = "outcome"
)

// Metrics are what one engine tells of its work. No label names a tenant: that
// would be series for each, for ever.
type Metrics struct {
	synced         *prometheus.HistogramVec
	waited         *prometheus.HistogramVec
	latency        *prometheus.HistogramVec
	pendingObjects *prometheus.GaugeVec
	rejectedWrites prometheus.Counter
	patrol         *patrol.Metrics
	queue          *queueMetrics
}

// NewMetrics makes the metrics of an engine and registers them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		synced: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_syncer_sync_duration_seconds",
			Help: "How long the reconcile of one object took, by kind; by direction: down, if it sent requests to the super cluster; up, to " +
				"the tenant; both; or none; and by outcome: synced; blocked, on an object that does not exist; rejected, by a policy, a " +
				"validator or the super cluster's API; waiting, for something that is under way; in_doubt, whether the tenant has deleted " +
				"an object that is missing; paused, since the tenant's apiserver does not answer; conflict, with another writer; " +
				"forbidden, because the syncer lacks a right; timeout; or error.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{kindLabel, "direction", outcomeLabel}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_syncer_queue_wait_seconds",
			Help: "How long objects that were due waited for a worker, by priority (high, normal or low) and by the tenant's weight. " +
				"The time for which their tenant was paused or at its cap counts.",
			Buckets: []float64{.0001, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"priority", "weight"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_syncer_latency_seconds",
			Help: "How long new objects took, by kind, from the event of the tenant's apiserver until they were copied to the super " +
				"cluster, and pods until the tenant could read that they run. Objects that are copied on demand do not count.",
			Buckets: []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{kindLabel, "until"}),
		pendingObjects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vc_syncer_pending_objects",
			Help: "Tenants' objects that are not synced for now, by kind and by outcome of the last reconcile: blocked, rejected, waiting, " +
				"in_doubt, paused or failed. /debug/pending on the metrics port lists them.",
		}, []string{kindLabel, outcomeLabel}),
		rejectedWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_syncer_rejected_writes_total",
			Help: "Writes into namespaces of the super cluster that do not belong to the tenant, which the syncer did not send.",
		}),
		queue: newQueueMetrics(),
	}
	for _, c := range []prometheus.Collector{
		m.synced, m.waited, m.latency, m.pendingObjects, m.rejectedWrites, m.queue,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the engine's metrics: %w", err)
		}
	}
	var err error
	m.patrol, err = patrol.NewMetrics(registerer)
	return m, err
}

// observeSync records the end of a reconcile.
func (m *Metrics) observeSync(kind string, sent *requests.Tally, began time.Time, o pending.Outcome) {
	m.synced.WithLabelValues(kind, directionOf(sent), outcomeName(o)).Observe(time.Since(began).Seconds())
}

// directionOf says which way something went.
func directionOf(sent *requests.Tally) string {
	down, up := sent.To(requests.Super) > 0, sent.To(requests.Tenant) > 0
	switch {
	case down && up:
		return "both"
	case down:
		return "down"
	case up:
		return "up"
	}
	return "none"
}

// stateName returns the value of a label for a state.
func stateName(s pending.State) string {
	switch s {
	case pending.Synced:
		return "synced"
	case pending.BlockedOn:
		return "blocked"
	case pending.Rejected:
		return "rejected"
	case pending.Waiting:
		return "waiting"
	case pending.InDoubt:
		return "in_doubt"
	case pending.Paused:
		return "paused"
	case pending.Failed:
	}
	return "failed"
}

// outcomeName returns the value of a label for an outcome: the state, except
// for failures, which are distinguished by who has to correct them.
func outcomeName(o pending.Outcome) string {
	switch {
	case o.State != pending.Failed:
		return stateName(o.State)
	case pending.LacksRights(o.Err):
		return "forbidden"
	case apierrors.IsConflict(o.Err):
		return "conflict"
	case errors.Is(o.Err, context.DeadlineExceeded):
		return "timeout"
	}
	return "error"
}

// weightClass sorts tenants by their weights, into few classes.
func weightClass(weight int32) string {
	switch {
	case weight >= 100:
		return "100 or more"
	case weight >= 10:
		return "10 to 99"
	case weight >= 2:
		return "2 to 9"
	}
	return "1"
}

func priorityName(priority int) string {
	switch {
	case priority >= queue.PriorityHigh:
		return "high"
	case priority <= queue.PriorityLow:
		return "low"
	}
	return "normal"
}

// observeWait notes how long a request waited for a worker.
func (m *Metrics) observeWait(w fairqueue.Wait) {
	m.waited.WithLabelValues(priorityName(w.Priority), weightClass(w.Weight)).Observe(w.Lasted.Seconds())
}

// observeLatency records how long a new object has taken.
func (m *Metrics) observeLatency(kind, until string, since time.Time) {
	m.latency.WithLabelValues(kind, until).Observe(time.Since(since).Seconds())
}

// countPending counts objects of a kind that enter or leave a state.
func (m *Metrics) countPending(kind string, state pending.State, by int) {
	m.pendingObjects.WithLabelValues(kind, stateName(state)).Add(float64(by))
}

// queueMetrics count what is in the queue when they are read.
type queueMetrics struct {
	queue    atomic.Pointer[fairqueue.Queue[queue.Request]] // nil before there is an engine
	requests *prometheus.GaugeVec
	longest  prometheus.Gauge
	tenants  prometheus.Gauge
	slow     prometheus.Gauge
}

func newQueueMetrics() *queueMetrics {
	return &queueMetrics{
		requests: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vc_syncer_queue_objects",
			Help: "Objects in the queue, by state: due, waiting for a worker; paused, due as well, but the tenant does not answer; " +
				"delayed, to be reconciled later; in_flight, being worked on.",
		}, []string{"state"}),
		longest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vc_syncer_queue_longest_lane",
			Help: "How many objects are due, waiting for a worker, of the tenant that has most of them.",
		}),
		tenants: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vc_syncer_queue_busy_tenants",
			Help: "Tenants that have objects that wait for a worker or are being worked on.",
		}),
		slow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vc_syncer_queue_slow_tenants",
			Help: "Tenants whose apiservers answer slowly, so that their objects are reconciled by the workers of --slow-workers.",
		}),
	}
}

// Describe sends what the metrics are called.
func (q *queueMetrics) Describe(to chan<- *prometheus.Desc) {
	q.requests.Describe(to)
	q.longest.Describe(to)
	q.tenants.Describe(to)
	q.slow.Describe(to)
}

// Collect counts.
func (q *queueMetrics) Collect(to chan<- prometheus.Metric) {
	var stats fairqueue.Stats
	if queue := q.queue.Load(); queue != nil {
		stats = queue.Stats()
	}
	for state, n := range map[string]int{
		"due": stats.Due, "paused": stats.Paused, "delayed": stats.Delayed, "in_flight": stats.InFlight,
	} {
		q.requests.WithLabelValues(state).Set(float64(n))
	}
	q.longest.Set(float64(stats.Longest))
	q.tenants.Set(float64(stats.Busy))
	q.slow.Set(float64(stats.Slow))
	q.requests.Collect(to)
	q.longest.Collect(to)
	q.tenants.Collect(to)
	q.slow.Collect(to)
}
