package inflight

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector exports the metrics of a host.
type collector struct {
	host                              *Host
	running, limit, bytes, rejections *prometheus.Desc
}

// NewCollector returns a collector of a host's metrics.
func NewCollector(host *Host) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vc_hosted_"+name, help, append([]string{"control_plane"}, labels...), nil)
	}
	return &collector{
		host:       host,
		running:    desc("requests_in_flight", "Requests of clients that a control plane has in flight.", "kind"),
		limit:      desc("requests_in_flight_limit", "Requests that a control plane may have in flight; 0 is no limit.", "kind"),
		bytes:      desc("requests_in_flight_bytes", "Estimated memory of the requests that a control plane has in flight."),
		rejections: desc("rejected_requests_total", "Requests rejected with 429 because of a limit of their control plane.", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.running, c.limit, c.bytes, c.rejections} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, t := range c.host.all() {
		usage := t.Usage()
		for kind := range Kind(kinds) {
			to <- prometheus.MustNewConstMetric(c.running, prometheus.GaugeValue, float64(usage.Running[kind]), t.name, kind.String())
			to <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(usage.Limits.Of(kind)), t.name, kind.String())
		}
		to <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(usage.Bytes), t.name)
		for _, reason := range Reasons() {
			to <- prometheus.MustNewConstMetric(c.rejections, prometheus.CounterValue, float64(usage.Rejected[reason]), t.name, string(reason))
		}
	}
}

// all returns the tenants.
func (h *Host) all() []*Tenant {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*Tenant, 0, len(h.tenants))
	for t := range h.tenants {
		all = append(all, t)
	}
	return all
}
