package tenants

import (
	"errors"

	"github.com/coredns/coredns/plugin"
	"github.com/prometheus/client_golang/prometheus"
)

// Reasons for which queries and connections are dropped.
const (
	foreign = "foreign"
	unknown = "unknown"
	busy    = "busy"
)

// metrics are those of the plugin. They do not name tenants, which would make a
// series of each.
type metrics struct {
	listeners prometheus.Gauge
	dropped   *prometheus.CounterVec
}

// newMetrics creates the metrics. Those of a former instance of the plugin remain
// in use: a registry accepts each metric once.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	listeners := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: "tenants", Name: "listeners", Help: "Tenants that are answered.",
	})
	dropped := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: "tenants", Name: "dropped_total",
		Help: "Queries and connections without an answer: foreign (from a pod of another tenant), unknown (from no pod), busy (over a limit).",
	}, []string{"reason"})
	m := &metrics{}
	var errs [2]error
	m.listeners, errs[0] = registered(registry, listeners)
	m.dropped, errs[1] = registered(registry, dropped)
	return m, errors.Join(errs[:]...)
}

// registered registers a collector, or returns the one that is registered.
func registered[C prometheus.Collector](registry prometheus.Registerer, collector C) (C, error) {
	err := registry.Register(collector)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if former, ok := already.ExistingCollector.(C); ok {
			return former, nil
		}
	}
	return collector, err
}

func (m *metrics) drop(reason string) { m.dropped.WithLabelValues(reason).Inc() }
