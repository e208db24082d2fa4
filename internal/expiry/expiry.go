// Package expiry exports when certificates expire, by their kind: the number of
// series does not depend on the number of tenants.
package expiry

import (
	"iter"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Soon is how long before its end a certificate counts as expiring.
const Soon = 30 * 24 * time.Hour

// Certificates are the kinds of certificates, and when they expire.
type Certificates iter.Seq2[string, time.Time]

// collector exports the metrics of certificates.
type collector struct {
	kinds            []string
	sources          []Certificates
	earliest, number *prometheus.Desc
}

// NewCollector returns a collector of the metrics of certificates, whose names
// begin with a prefix, such as vc_manager. Other kinds than these are left out.
// The sources are read at each scrape.
func NewCollector(prefix string, kinds []string, sources ...Certificates) prometheus.Collector {
	labels := []string{"kind"}
	return &collector{
		kinds: kinds, sources: sources,
		earliest: prometheus.NewDesc(prefix+"_certificate_expiry_timestamp_seconds",
			"When the first certificate of a kind expires; +Inf if there is none.", labels, nil),
		number: prometheus.NewDesc(prefix+"_certificates_expiring",
			"Number of certificates of a kind that have expired or expire within 30 days.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.earliest
	to <- c.number
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	earliest, expiring := map[string]float64{}, map[string]int{}
	for _, kind := range c.kinds {
		earliest[kind] = math.Inf(1)
	}
	soon := time.Now().Add(Soon)
	for _, source := range c.sources {
		for kind, end := range source {
			earliest[kind] = min(earliest[kind], float64(end.Unix()))
			if end.Before(soon) {
				expiring[kind]++
			}
		}
	}
	for _, kind := range c.kinds {
		to <- prometheus.MustNewConstMetric(c.earliest, prometheus.GaugeValue, earliest[kind], kind)
		to <- prometheus.MustNewConstMetric(c.number, prometheus.GaugeValue, float64(expiring[kind]), kind)
	}
}
