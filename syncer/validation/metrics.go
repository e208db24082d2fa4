package validation

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/internal/panics"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// Results of validators.
const (
	allowed  = "allowed"
	rejected = "rejected"
	busy     = "busy"
	unknown  = "unknown_tenant"
	panicked = "panic"
	timeout  = "timeout"
	failed   = "error"
)

// Metrics are the metrics of a gate.
type Metrics struct {
	validations *prometheus.CounterVec
	locked      *prometheus.HistogramVec
}

// NewMetrics creates and registers the metrics of a gate.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	const plugin = "plugin"
	m := &Metrics{
		validations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vc_syncer_validations_total",
			Help: "Results of validators, by plugin and result: allowed; rejected; busy, the tenant's lock was not free in time; " +
				"unknown_tenant; or, if the validator failed, panic, timeout or error.",
		}, []string{plugin, "result"}),
		locked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_syncer_validation_lock_seconds",
			Help: "How long a tenant was locked for a validation and the write after it, by plugin. " +
				"During that time, no other object of the tenant is written that the plugin watches.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{plugin}),
	}
	for _, c := range []prometheus.Collector{m.validations, m.locked} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of validation: %w", err)
		}
	}
	return m, nil
}

// resultOf returns the result for an answer.
func resultOf(err error) string {
	no := plugins.AsRejection(err) != nil
	switch {
	case err == nil:
		return allowed
	case no:
		return rejected
	case errors.Is(err, errBusy):
		return busy
	case errors.Is(err, errUnknownTenant):
		return unknown
	case errors.Is(err, panics.ErrPanic):
		return panicked
	case errors.Is(err, errTimeout), errors.Is(err, errHung), errors.Is(err, context.DeadlineExceeded):
		return timeout
	}
	return failed
}
