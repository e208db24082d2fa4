package share

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a replica that shares the tenants.
type Metrics struct {
	replicas, writes prometheus.Gauge
}

// NewMetrics creates and registers the metrics. Their names begin with that of
// the program, such as vc_syncer.
func NewMetrics(registerer prometheus.Registerer, program string) (*Metrics, error) {
	m := &Metrics{
		replicas: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: program, Subsystem: "share", Name: "replicas",
			Help: "Number of replicas among which this one divides the tenants; 0 if it does not share them.",
		}),
		writes: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: program, Subsystem: "share", Name: "lease_held",
			Help: "1 while this replica holds a Lease and may write; 0 otherwise, and if it does not share the tenants.",
		}),
	}
	for _, c := range []prometheus.Collector{m.replicas, m.writes} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of sharing: %w", err)
		}
	}
	return m, nil
}

// open records that a replica may write until a period ends.
func (m *Metrics) open(during *period) {
	m.writes.Set(1)
	context.AfterFunc(during.closed, func() { m.writes.Set(0) })
}
