package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// The steps, outcomes and results of moves in metrics.
const (
	stepPrepare = "prepare"
	stepCopy    = "copy"

	outcomeSucceeded   = "succeeded"
	outcomeRefused     = "refused"
	outcomeFailed      = "failed"
	outcomeInterrupted = "interrupted"

	resultMoved  = "moved"
	resultStayed = "stayed"
)

// moveMetrics measures moves of data. No label names a control plane.
type moveMetrics struct {
	seconds, down *prometheus.HistogramVec
	bytes         prometheus.Counter
}

// newMoveMetrics creates and registers the metrics.
func newMoveMetrics(registerer prometheus.Registerer) (*moveMetrics, error) {
	m := &moveMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_host_move_duration_seconds",
			Help: "Duration of the steps of moves to another store: prepare, while the control plane serves, or copy, while it is stopped; " +
				"by outcome: succeeded; refused, since the store is full or behind; failed; or interrupted.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		}, []string{"outcome", "step"}),
		down: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vc_host_move_downtime_seconds",
			Help:    "Time from when a control plane was stopped for a move until it served again, by result: moved, or stayed in its store.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"result"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_host_moved_bytes_total", Help: "Bytes of keys and values that were copied to another store.",
		}),
	}
	for _, outcome := range []string{outcomeSucceeded, outcomeRefused, outcomeFailed, outcomeInterrupted} {
		m.seconds.WithLabelValues(outcome, stepPrepare)
		m.seconds.WithLabelValues(outcome, stepCopy)
	}
	for _, result := range []string{resultMoved, resultStayed} {
		m.down.WithLabelValues(result)
	}
	for _, each := range m.collectors() {
		if err := registerer.Register(each); err != nil {
			m.unregister(registerer)
			return nil, fmt.Errorf("register the metrics of moves: %w", err)
		}
	}
	return m, nil
}

func (m *moveMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.seconds, m.down, m.bytes}
}

func (m *moveMetrics) unregister(from prometheus.Registerer) {
	for _, each := range m.collectors() {
		from.Unregister(each)
	}
}

// step records a step that has ended. The context is that of the move.
func (m *moveMetrics) step(ctx context.Context, name string, begun time.Time, err error) {
	m.seconds.WithLabelValues(outcomeOf(ctx, err), name).Observe(time.Since(begun).Seconds())
}

func outcomeOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return outcomeSucceeded
	case ctx.Err() != nil, errors.Is(err, errOutdated):
		return outcomeInterrupted
	}
	switch reasonOf(err) {
	case tenancyv1alpha1.ReasonStoreBehind, tenancyv1alpha1.ReasonStoreFull:
		return outcomeRefused
	}
	return outcomeFailed
}

// serves records that a control plane serves again.
func (m *moveMetrics) serves(moved bool, down time.Duration) {
	result := resultStayed
	if moved {
		result = resultMoved
	}
	m.down.WithLabelValues(result).Observe(down.Seconds())
}
