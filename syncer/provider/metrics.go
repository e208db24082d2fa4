package provider

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics are the metrics of a provider. They have no label for the tenant: the
// number of series would grow without bound.
type Metrics struct {
	tenants *prometheus.GaugeVec
	trips   prometheus.Counter
	// rejected has a label for kinds that the syncer or an admin has named, and
	// for a fixed set of reasons.
	rejected *prometheus.CounterVec

	mu      sync.Mutex
	reasons map[types.NamespacedName]string
}

// reasonLabel is the label of a reason.
const reasonLabel = "reason"

// NewMetrics creates and registers the metrics of a provider.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		tenants: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vc_syncer_tenants",
			Help: "VirtualClusters by state: the reason of the condition Syncing, " +
				"or Starting until the tenant's objects are synced for the first time.",
		}, []string{reasonLabel}),
		trips: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vc_syncer_breaker_trips_total",
			Help: "Number of times that a tenant was parked because its apiserver did not answer.",
		}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vc_syncer_tenant_objects_rejected_total",
			Help: "Objects of tenants' apiservers that were dropped, by the requested kind and the reason: " +
				"Kind, Name, Namespace, Identity (UID or resource version), Metadata (too much), Duplicate, Event (of a watch, unusable), " +
				"Memory (more than --tenant-memory).",
		}, []string{"kind", reasonLabel}),
		reasons: map[types.NamespacedName]string{},
	}
	for _, c := range []prometheus.Collector{m.tenants, m.trips, m.rejected} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the provider's metrics: %w", err)
		}
	}
	return m, nil
}

// observe records the state of a VirtualCluster.
func (m *Metrics) observe(vc types.NamespacedName, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lockedForget(vc)
	m.reasons[vc] = reason
	m.tenants.WithLabelValues(reason).Inc()
}

// forget records that a VirtualCluster was deleted.
func (m *Metrics) forget(vc types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lockedForget(vc)
}

func (m *Metrics) lockedForget(vc types.NamespacedName) {
	if reason, known := m.reasons[vc]; known {
		delete(m.reasons, vc)
		m.tenants.WithLabelValues(reason).Dec()
	}
}

// countRejected counts an object that was dropped.
func (m *Metrics) countRejected(kind, reason string) { m.rejected.WithLabelValues(kind, reason).Inc() }
