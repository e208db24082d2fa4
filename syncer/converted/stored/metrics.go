package stored

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics export what converted tenants store, and their limits.
type Metrics struct {
	bytes, objects, limitBytes, limitObjects *prometheus.GaugeVec

	// shown are the tenants that have series.
	shown map[string]report
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "vc_syncer_converted_storage_" + name, Help: help}, []string{"tenant"})
	}
	m := &Metrics{
		bytes: gauge("bytes",
			"Bytes that a converted tenant stores, by its cluster key. The replica that answers the webhook exports them."),
		objects:      gauge("objects", "Objects that a converted tenant stores."),
		limitBytes:   gauge("limit_bytes", "Bytes that a converted tenant may store; 0 is no limit."),
		limitObjects: gauge("limit_objects", "Objects that a converted tenant may store; 0 is no limit."),
	}
	for _, c := range []prometheus.Collector{m.bytes, m.objects, m.limitBytes, m.limitObjects} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of what converted tenants store: %w", err)
		}
	}
	return m, nil
}

// show replaces the series of all tenants.
func (m *Metrics) show(all map[string]report) {
	for tenant, r := range all {
		m.bytes.WithLabelValues(tenant).Set(float64(r.stored.Bytes))
		m.objects.WithLabelValues(tenant).Set(float64(r.stored.Objects))
		m.limitBytes.WithLabelValues(tenant).Set(float64(r.most.Bytes))
		m.limitObjects.WithLabelValues(tenant).Set(float64(r.most.Objects))
	}
	for tenant := range m.shown {
		if _, still := all[tenant]; still {
			continue
		}
		for _, vec := range []*prometheus.GaugeVec{m.bytes, m.objects, m.limitBytes, m.limitObjects} {
			vec.DeleteLabelValues(tenant)
		}
	}
	m.shown = all
}
