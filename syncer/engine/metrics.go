package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/syncer/deletion"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// kindLabel is the label with the name of a kind.
const kindLabel = "kind"

// Metrics are what one engine tells of its work. No label names a tenant: that would be series for each, for ever.
type Metrics struct {
	synced         *prometheus.HistogramVec
	waited         *prometheus.HistogramVec
	refusedObjects *prometheus.GaugeVec
	heldObjects    *prometheus.GaugeVec
	blockedObjects *prometheus.GaugeVec
	refusedWrites  prometheus.Counter
	patrolFindings *prometheus.CounterVec
	patrolDuration prometheus.Histogram
	// patrolPostponed counts tenants for whom a round of the patrol was too short.
	patrolPostponed prometheus.Counter
	patrolled       prometheus.Gauge
	queue           *queueMetrics
}

// NewMetrics makes the metrics of an engine and registers them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		synced: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_syncer_sync_duration_seconds",
			Help: "How long the work on one object took, by kind; by direction: down, when it sent something to the super cluster; up, to the " +
				"tenant; both; or none; and by result: done; waiting, for its turn with the validators; blocked, on an object " +
				"that does not exist; in_doubt, whether the tenant has deleted what is missing; " +
				"refused, which is the tenant's to mend; conflict, with another writer; forbidden, for want of a right of the syncer's; " +
				"timeout; or error.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{kindLabel, "direction", "result"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_syncer_queue_wait_seconds",
			Help: "How long objects that were due waited for a worker, by priority (high, normal or low) and by the tenant's weight. " +
				"The time for which their tenant was paused or at its cap counts.",
			Buckets: []float64{.0001, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"priority", "weight"}),
		refusedObjects: pendingObjects("vc_syncer_refused_objects",
			"Tenants' objects that are not synced for now because they are refused; each has an event that says why."),
		heldObjects: pendingObjects("vc_syncer_held_objects",
			"Tenants' objects that are not synced for now because validators do not allow them; each has an event that says why."),
		blockedObjects: pendingObjects("vc_syncer_blocked_objects",
			"Tenants' objects that are not synced for now because they refer to something that does not exist; each has an "+
				"event that names it after ten seconds."),
		refusedWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_syncer_refused_writes_total",
			Help: "Writes into namespaces of the super cluster that did not belong to the tenant.",
		}),
		patrolFindings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vc_syncer_patrol_findings_total",
			Help: "Objects of which the patrol found that the two sides differ.",
		}, []string{kindLabel}),
		patrolDuration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "vc_syncer_patrol_duration_seconds",
			Help:    "How long a round of the patrol took, which compares both sides of all objects of all tenants, each for its budget.",
			Buckets: prometheus.ExponentialBuckets(.01, 4, 8),
		}),
		patrolPostponed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_syncer_patrol_postponed_total",
			Help: "Tenants whose objects exceeded the budget of a round of the patrol, which goes on with them in the next.",
		}),
		patrolled: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vc_syncer_patrol_last_round_timestamp_seconds",
			Help: "When the last round of the patrol ended; 0 before the first.",
		}),
		queue: newQueueMetrics(),
	}
	for _, c := range []prometheus.Collector{
		m.synced, m.waited, m.refusedObjects, m.heldObjects, m.blockedObjects, m.refusedWrites, m.patrolFindings,
		m.patrolDuration, m.patrolPostponed, m.patrolled, m.queue,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the engine's metrics: %w", err)
		}
	}
	return m, nil
}

// pendingObjects makes a gauge of objects that are not synced for now, by kind.
func pendingObjects(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{kindLabel})
}

// observeSync notes that the work on an object ended.
func (m *Metrics) observeSync(kind string, sent *requests.Tally, began time.Time, err error) {
	m.synced.WithLabelValues(kind, directionOf(sent), resultOf(err)).Observe(time.Since(began).Seconds())
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

// resultOf sorts the results of the work on an object by whose they are to look at.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case pending.IsBlocked(err):
		return "blocked"
	case pending.IsRejection(err):
		return "refused"
	case errors.Is(err, queue.ErrNotItsTurn):
		return "waiting"
	case errors.Is(err, deletion.ErrInDoubt):
		return "in_doubt"
	case pending.LacksRights(err):
		return "forbidden"
	case apierrors.IsConflict(err):
		return "conflict"
	case errors.Is(err, context.DeadlineExceeded):
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

// countRefused counts objects that become refused, or are no more.
func (m *Metrics) countRefused(kind string, by int) {
	m.refusedObjects.WithLabelValues(kind).Add(float64(by))
}

// countHeld counts objects that validators come not to allow, or do no more.
func (m *Metrics) countHeld(kind string, by int) {
	m.heldObjects.WithLabelValues(kind).Add(float64(by))
}

// countBlocked counts objects that become blocked on others, or are no more.
func (m *Metrics) countBlocked(kind string, by int) {
	m.blockedObjects.WithLabelValues(kind).Add(float64(by))
}

// observePatrol notes that the patrol has compared everything once.
func (m *Metrics) observePatrol(began time.Time) {
	m.patrolDuration.Observe(time.Since(began).Seconds())
	m.patrolled.SetToCurrentTime()
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
				"delayed, to be looked at later; in_flight, being worked on.",
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
