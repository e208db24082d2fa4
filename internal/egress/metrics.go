package egress

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what tenants' apiservers may not connect to. No label names a
// tenant: series of deleted tenants would stay.
type Metrics struct {
	refusals *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vc_standalone_egress_refused_total",
		Help: "Connections of hosted tenants' apiservers that were refused, by purpose (kubelet, apiservice, webhook, proxy, or itself) and " +
			"reason: reserved, such as loopback or metadata; platform, this machine or a node; foreign, of the super cluster and not of " +
			"the tenant's pods; outside, not in --tenant-egress-cidr; unresolved, a name; no_agent, a kubelet that is not vn-agent; or " +
			"not_itself.",
	}, []string{"purpose", "reason"})}
	if err := registerer.Register(m.refusals); err != nil {
		return nil, fmt.Errorf("register the metrics of refused connections: %w", err)
	}
	return m, nil
}

// RegisterMetrics registers the metrics, to be described in docs/metrics.md.
func RegisterMetrics(registerer prometheus.Registerer) error {
	_, err := NewMetrics(registerer)
	return err
}

// refused counts a connection; nil counts none.
func (m *Metrics) refused(purpose Purpose, reason Reason) {
	if m == nil {
		return
	}
	m.refusals.WithLabelValues(string(purpose), string(reason)).Inc()
}
