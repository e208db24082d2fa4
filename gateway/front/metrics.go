package front

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what a gateway tells of its work. No label names a tenant or a
// caller: that would be series for each, for ever.
type Metrics struct {
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	inFlight     *prometheus.GaugeVec
	passThrough  prometheus.Gauge
	passRejected prometheus.Counter
}

// NewMetrics makes the metrics of a gateway and registers them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	const class = "class"
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vc_gateway_requests_total",
			Help: "Requests, by class (read, write, watch, upgrade, proxy, or refused by the gateway before it was known) and status code.",
		}, []string{class, "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vc_gateway_request_seconds",
			Help:    "Time of requests from their headers to the end of the response, by class; not of watches and upgrades.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{class}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vc_gateway_requests_in_flight",
			Help: "Requests in flight, by class.",
		}, []string{class}),
		passThrough: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vc_gateway_passed_connections",
			Help: "Open connections that are passed to a control plane without being decrypted.",
		}),
		passRejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_gateway_rejected_connections_total",
			Help: "Connections that were closed because too many are passed to control planes (--passed-connections).",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.inFlight, m.passThrough, m.passRejected} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the gateway: %w", err)
		}
	}
	return m, nil
}
