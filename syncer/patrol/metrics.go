package patrol

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of the patrol.
type Metrics struct {
	findings *prometheus.CounterVec
	duration prometheus.Histogram
	// postponed counts tenants for which a round was too short.
	postponed prometheus.Counter
	ended     prometheus.Gauge
}

// NewMetrics returns the metrics of a patrol and registers them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		findings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vc_syncer_patrol_findings_total",
			Help: "Objects of which the patrol found that the two sides differ.",
		}, []string{"kind"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "vc_syncer_patrol_duration_seconds",
			Help:    "How long a round of the patrol took, which compares both sides of all objects of all tenants, each for its budget.",
			Buckets: prometheus.ExponentialBuckets(.01, 4, 8),
		}),
		postponed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_syncer_patrol_postponed_total",
			Help: "Tenants whose objects exceeded the budget of a round of the patrol, which continues with them in the next.",
		}),
		ended: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vc_syncer_patrol_last_round_timestamp_seconds",
			Help: "When the last round of the patrol ended; 0 before the first.",
		}),
	}
	for _, c := range []prometheus.Collector{m.findings, m.duration, m.postponed, m.ended} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the patrol: %w", err)
		}
	}
	return m, nil
}

// observe records that a round has ended.
func (m *Metrics) observe(began time.Time) {
	m.duration.Observe(time.Since(began).Seconds())
	m.ended.SetToCurrentTime()
}
