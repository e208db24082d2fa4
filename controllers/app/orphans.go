package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/internal/orphans"
)

// orphanAge is how old a namespace is before it counts as an orphan: the cache of
// VirtualClusters can be behind that of namespaces.
const orphanAge = time.Minute

// orphaned exports how many namespaces are left of VirtualClusters that vanished.
type orphaned struct {
	of     sources
	number *prometheus.Desc
}

func newOrphaned(of sources) *orphaned {
	return &orphaned{of: of, number: prometheus.NewDesc("vc_manager_orphaned_namespaces",
		"Namespaces of VirtualClusters that vanished without their finalizer. kubectl vc sweep lists and deletes them. "+
			"All replicas export all of them.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (o *orphaned) Describe(to chan<- *prometheus.Desc) { to <- o.number }

// Collect implements prometheus.Collector. Without the cache, nothing is
// exported.
func (o *orphaned) Collect(to chan<- prometheus.Metric) {
	count := 0
	if o.of.reader != nil {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		found, err := orphans.Find(ctx, o.of.reader)
		if err != nil {
			return
		}
		for i := range found {
			if time.Since(found[i].CreationTimestamp.Time) > orphanAge {
				count++
			}
		}
	}
	to <- prometheus.MustNewConstMetric(o.number, prometheus.GaugeValue, float64(count))
}
