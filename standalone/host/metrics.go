package host

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// scrapeTimeout limits how long a scrape waits for the cache.
const scrapeTimeout = time.Second

// The states of a control plane in metrics.
const (
	stateReady    = "ready"
	stateAsleep   = "asleep"
	stateStarting = "starting"
	stateFailing  = "failing"
)

// collector exports the control planes of a replica and all stores, as the cache
// has them. No label names a control plane.
type collector struct {
	reader  client.Reader
	replica string

	planes                             *prometheus.Desc
	bytes, capacity, healthy, inStores *prometheus.Desc
}

// newCollector returns the collector of a replica.
func newCollector(reader client.Reader, replica string) *collector {
	ofStore := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc("vc_host_store_"+metric, help+" All replicas export all stores.", []string{"store"}, nil)
	}
	return &collector{
		reader: reader, replica: replica,
		planes: prometheus.NewDesc("vc_host_control_planes",
			"Control planes that this replica runs, by state: ready, asleep, starting or failing.", []string{"state"}, nil),
		bytes:    ofStore("bytes", "Size of the data in use of a ControlPlaneStore."),
		capacity: ofStore("capacity_bytes", "Size up to which a ControlPlaneStore accepts writes."),
		healthy:  ofStore("healthy", "1 if a ControlPlaneStore can be read and written, 0 otherwise."),
		inStores: ofStore("control_planes", "Control planes whose data is in a ControlPlaneStore."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.planes, c.bytes, c.capacity, c.healthy, c.inStores} {
		to <- desc
	}
}

// Collect implements prometheus.Collector. Without the cache, nothing is
// exported: that is not the same as no control planes.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.collectControlPlanes(ctx, to)
	c.collectStores(ctx, to)
}

func (c *collector) collectControlPlanes(ctx context.Context, to chan<- prometheus.Metric) {
	all := &tenancyv1alpha1.HostedControlPlaneList{}
	if err := c.reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	count := map[string]int{}
	for i := range all.Items {
		if plane := &all.Items[i]; plane.Status.Host == c.replica {
			count[stateOf(plane)]++
		}
	}
	for _, state := range []string{stateReady, stateAsleep, stateStarting, stateFailing} {
		to <- prometheus.MustNewConstMetric(c.planes, prometheus.GaugeValue, float64(count[state]), state)
	}
}

// stateOf returns the state of a control plane by its conditions.
func stateOf(plane *tenancyv1alpha1.HostedControlPlane) string {
	ready := meta.FindStatusCondition(plane.Status.Conditions, tenancyv1alpha1.ConditionReady)
	switch {
	case meta.IsStatusConditionFalse(plane.Status.Conditions, tenancyv1alpha1.ConditionAwake):
		return stateAsleep
	case ready == nil || ready.Reason == tenancyv1alpha1.ReasonStarting:
		return stateStarting
	case isServed(plane):
		return stateReady
	}
	return stateFailing
}

func (c *collector) collectStores(ctx context.Context, to chan<- prometheus.Metric) {
	all := &tenancyv1alpha1.ControlPlaneStoreList{}
	if err := c.reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	for i := range all.Items {
		store := &all.Items[i]
		healthy := 0
		if meta.IsStatusConditionTrue(store.Status.Conditions, tenancyv1alpha1.ConditionStoreHealthy) {
			healthy = 1
		}
		for desc, value := range map[*prometheus.Desc]int64{
			c.bytes: store.Status.Bytes, c.capacity: cmp.Or(bytesOf(store), hosted.DefaultStoreBytes),
			c.inStores: int64(store.Status.ControlPlanes), c.healthy: int64(healthy),
		} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), store.Name)
		}
	}
}
