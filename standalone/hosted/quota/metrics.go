package quota

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector exports the metrics of a ledger.
type collector struct {
	ledger                                             *Ledger
	bytes, objects, limitBytes, limitObjects, rejected *prometheus.Desc
}

// NewCollector returns a collector of a ledger's metrics.
func NewCollector(ledger *Ledger) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vc_hosted_"+name, help, append([]string{"control_plane"}, labels...), nil)
	}
	return &collector{
		ledger:       ledger,
		bytes:        desc("storage_bytes", "Bytes that a control plane stores."),
		objects:      desc("storage_objects", "Objects that a control plane stores."),
		limitBytes:   desc("storage_limit_bytes", "Bytes that a control plane may store; 0 is no limit."),
		limitObjects: desc("storage_limit_objects", "Objects that a control plane may store; 0 is no limit."),
		rejected:     desc("rejected_writes_total", "Writes rejected because of a limit of their control plane.", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.bytes, c.objects, c.limitBytes, c.limitObjects, c.rejected} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	for name, a := range c.ledger.accounts {
		for desc, value := range map[*prometheus.Desc]int64{
			c.bytes: a.used.Bytes, c.objects: a.used.Objects, c.limitBytes: a.limits.Bytes, c.limitObjects: a.limits.Objects,
		} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), name)
		}
		for _, reason := range []Reason{ReasonStorage, ReasonPace, ReasonStore} {
			to <- prometheus.MustNewConstMetric(c.rejected, prometheus.CounterValue, float64(a.rejected[reason]), name, string(reason))
		}
	}
}
