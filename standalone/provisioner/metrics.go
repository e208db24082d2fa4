package provisioner

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of control planes that sleep. They have no label for
// the tenant: the number of series would grow without bound.
type Metrics struct {
	wakes      *prometheus.HistogramVec
	registerer prometheus.Registerer
	all        []prometheus.Collector
}

// NewMetrics creates and registers the metrics of a host's control planes, of
// which the function counts those that sleep.
func NewMetrics(registerer prometheus.Registerer, asleep func() int) (*Metrics, error) {
	m := &Metrics{
		wakes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_hosted_wake_duration_seconds",
			Help: "Time from what woke a control plane until it was ready, by the reason of the condition Awake.",
			Buckets: []float64{
				0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
			},
		}, []string{"reason"}),
	}
	sleeping := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "vc_hosted_sleeping_control_planes",
		Help: "Control planes that sleep and wake when they are used.",
	}, func() float64 { return float64(asleep()) })
	m.registerer, m.all = registerer, []prometheus.Collector{m.wakes, sleeping}
	for _, c := range m.all {
		if err := registerer.Register(c); err != nil {
			m.Unregister()
			return nil, fmt.Errorf("register the metrics of sleeping control planes: %w", err)
		}
	}
	return m, nil
}

// Unregister unregisters the metrics.
func (m *Metrics) Unregister() {
	for _, c := range m.all {
		m.registerer.Unregister(c)
	}
}

// observeWake records a control plane that is ready again.
func (m *Metrics) observeWake(reason string, took time.Duration) {
	if m != nil {
		m.wakes.WithLabelValues(reason).Observe(took.Seconds())
	}
}
