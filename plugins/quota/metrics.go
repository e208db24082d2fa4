package quota

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Labels of the metrics.
const (
	tenantLabel   = "tenant"
	classLabel    = "priority_class"
	resourceLabel = "resource"
)

// metrics export the usage and limits of tenants. No other metrics of the
// syncer have a label for the tenant.
type metrics struct{ used, hard *prometheus.GaugeVec }

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{tenantLabel, classLabel, resourceLabel})
	}
	m := &metrics{
		used: gauge("vc_syncer_quota_used", "Usage of the resources that spec.quota limits, by the tenant's cluster key, "+
			"the priority class that the limit is for (empty for all), and resource."),
		hard: gauge("vc_syncer_quota_hard", "Limits of spec.quota, with the labels of vc_syncer_quota_used."),
	}
	for _, c := range []prometheus.Collector{m.used, m.hard} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of quotas: %w", err)
		}
	}
	return m, nil
}

// RegisterMetrics registers the metrics without a quota, to generate their
// reference.
func RegisterMetrics(registerer prometheus.Registerer) error {
	_, err := newMetrics(registerer)
	return err
}

// show replaces the series of a tenant.
func (m *metrics) show(tenant string, status *tenancyv1alpha1.QuotaStatus) {
	m.forget(tenant)
	if status == nil {
		return
	}
	m.put(tenant, "", status.Used, status.Hard)
	for _, class := range status.PriorityClasses {
		m.put(tenant, class.Name, class.Used, class.Hard)
	}
}

func (m *metrics) put(tenant, class string, used, hard corev1.ResourceList) {
	for name, limit := range hard {
		has := used[name]
		m.used.WithLabelValues(tenant, class, string(name)).Set(has.AsApproximateFloat64())
		m.hard.WithLabelValues(tenant, class, string(name)).Set(limit.AsApproximateFloat64())
	}
}

func (m *metrics) forget(tenant string) {
	of := prometheus.Labels{tenantLabel: tenant}
	m.used.DeletePartialMatch(of)
	m.hard.DeletePartialMatch(of)
}
