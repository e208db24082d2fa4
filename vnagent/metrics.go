package vnagent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Directions of streams.
const (
	toPod   = "to_pod"
	fromPod = "from_pod"
)

// Reasons why an apiserver's certificate is refused.
const (
	refusedExpired   = "expired"
	refusedUnknown   = "unknown"
	refusedAmbiguous = "ambiguous"
	refusedError     = "error"
)

// Metrics are what an agent tells of its work. No label names a tenant: that
// would be series for each, for ever.
type Metrics struct {
	requests     *prometheus.CounterVec
	streams      *prometheus.GaugeVec
	bytes        *prometheus.CounterVec
	beginning    *prometheus.HistogramVec
	certificates *prometheus.CounterVec
}

// NewMetrics makes the metrics of an agent and registers them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	const labelCall = "call"
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vn_agent_requests_total",
			Help: "Requests of tenants' apiservers, by the kubelet's call (metrics: of the resource metrics API) and the status code " +
				"of the response; 101 is a stream that was established.",
		}, []string{labelCall, "code"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vn_agent_streams",
			Help: "Requests in flight, by the kubelet's call.",
		}, []string{labelCall}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vn_agent_stream_bytes_total",
			Help: "Bytes transferred, by the kubelet's call and direction (to_pod or from_pod).",
		}, []string{labelCall, "direction"}),
		beginning: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vn_agent_begin_seconds",
			Help:    "Time until the super cluster's response began, by the kubelet's call. The response of logs begins with the first line.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{labelCall}),
		certificates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vn_agent_refused_certificates_total",
			Help: "Client certificates that were rejected, by reason: expired; unknown, signed by no authority of a tenant; " +
				"ambiguous, signed by one that several tenants have; or error.",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.streams, m.bytes, m.beginning, m.certificates} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the agent's metrics: %w", err)
		}
	}
	return m, nil
}
