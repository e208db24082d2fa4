package networks

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of calls of providers.
const (
	done     = "done"
	underWay = "under_way"
	rejected = "rejected"
	errored  = "error"
	panicked = "panic"
	timedOut = "timeout"
)

// Metrics are the metrics of providers of networks.
type Metrics struct {
	calls *prometheus.CounterVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{calls: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vc_syncer_network_provider_calls_total",
		Help: "Calls of providers of networks, by type of the network, method and result: done; under_way, what it asks for takes time; " +
			"rejected, the tenant has to change something; or, if the provider failed, error, panic or timeout.",
	}, []string{"type", "method", "result"})}
	if err := registerer.Register(m.calls); err != nil {
		return nil, fmt.Errorf("register the metrics of providers of networks: %w", err)
	}
	return m, nil
}
