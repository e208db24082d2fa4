package app

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// unknown is the label of a provisioner that the manager does not have.
const unknown = "unknown"

// tenants exports the number of VirtualClusters.
type tenants struct {
	of     sources
	number *prometheus.Desc
}

func newTenants(of sources) *tenants {
	return &tenants{of: of, number: prometheus.NewDesc("vc_manager_tenants",
		"VirtualClusters by phase and provisioner: unknown, if the manager does not have it. All replicas export all of them.",
		[]string{"phase", "provisioner"}, nil)}
}

// Describe implements prometheus.Collector.
func (t *tenants) Describe(to chan<- *prometheus.Desc) { to <- t.number }

// Collect implements prometheus.Collector. Without the cache, nothing is
// exported: that is not the same as no tenants.
func (t *tenants) Collect(to chan<- prometheus.Metric) {
	all := &tenancyv1alpha1.VirtualClusterList{}
	if t.of.reader != nil {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		if err := t.of.reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
			return
		}
	}
	type group struct{ phase, provisioner string }
	count := map[group]int{}
	for i := range all.Items {
		vc := &all.Items[i]
		count[group{string(phaseOf(vc)), t.provisionerOf(vc)}]++
	}
	for _, phase := range phases() {
		for _, provisioner := range t.provisioners() {
			to <- prometheus.MustNewConstMetric(t.number, prometheus.GaugeValue,
				float64(count[group{string(phase), provisioner}]), string(phase), provisioner)
		}
	}
}

func phases() []tenancyv1alpha1.Phase {
	return []tenancyv1alpha1.Phase{
		tenancyv1alpha1.PhasePending, tenancyv1alpha1.PhaseRunning, tenancyv1alpha1.PhaseAsleep,
		tenancyv1alpha1.PhasePaused, tenancyv1alpha1.PhaseError, tenancyv1alpha1.PhaseTerminating,
	}
}

// phaseOf returns the phase of a VirtualCluster. One without a status is
// pending.
func phaseOf(vc *tenancyv1alpha1.VirtualCluster) tenancyv1alpha1.Phase {
	if slices.Contains(phases(), vc.Status.Phase) {
		return vc.Status.Phase
	}
	return tenancyv1alpha1.PhasePending
}

// provisioners returns the values of the label.
func (t *tenants) provisioners() []string {
	all := []string{unknown}
	for provisioner := range maps.Keys(t.of.registry) {
		all = append(all, string(provisioner))
	}
	return all
}

// provisionerOf returns the provisioner of a VirtualCluster.
func (t *tenants) provisionerOf(vc *tenancyv1alpha1.VirtualCluster) string {
	provisioner := cmp.Or(vc.Spec.Provisioner, t.of.byDefault)
	if _, ok := t.of.registry[provisioner]; !ok {
		return unknown
	}
	return string(provisioner)
}
