package inflight

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// collector exports the metrics of a host: sums of all control planes, so that
// the number of series does not grow with them. The condition WithinLimits of a
// VirtualCluster tells which of them is at a limit.
type collector struct {
	host                       *Host
	running, bytes, rejections *prometheus.Desc
}

// NewCollector returns a collector of a host's metrics.
func NewCollector(host *Host) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vc_hosted_"+name, help, labels, nil)
	}
	return &collector{
		host:       host,
		running:    desc("requests_in_flight", "Requests of clients that all control planes have in flight.", "kind"),
		bytes:      desc("requests_in_flight_bytes", "Estimated memory of the requests that all control planes have in flight."),
		rejections: desc("rejected_requests_total", "Requests rejected with 429 because of a limit of their control plane.", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.running, c.bytes, c.rejections} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	running, bytes, rejected := c.host.usage()
	for kind := range Kind(kinds) {
		to <- prometheus.MustNewConstMetric(c.running, prometheus.GaugeValue, float64(running[kind]), kind.String())
	}
	to <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(bytes))
	for _, reason := range Reasons() {
		to <- prometheus.MustNewConstMetric(c.rejections, prometheus.CounterValue, float64(rejected[reason]), string(reason))
	}
}

// usage returns the requests in flight of all tenants, their memory, and how many
// requests were rejected, also of tenants that are gone.
func (h *Host) usage() (running [kinds]int, bytes int64, rejected map[Reason]int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.tenants {
		for kind := range Kind(kinds) {
			running[kind] += t.running[kind]
		}
		bytes += t.held
	}
	return running, bytes, maps.Clone(h.rejected)
}
