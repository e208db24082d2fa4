package virtualcluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// created makes a VirtualCluster of this time with conditions that are true.
func created(uid types.UID, endpoint string, conditions ...string) *tenancyv1alpha1.VirtualCluster {
	return tenant(func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.UID, vc.CreationTimestamp, vc.Status.Endpoint = uid, metav1.NewTime(time.Unix(1000, 0)), endpoint
		for _, kind := range conditions {
			vc.Status.Conditions = append(vc.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
	})
}

func at(seconds int64) time.Time { return time.Unix(1000+seconds, 0) }

// durations returns the number and the sum of each step.
func durations(t *testing.T, registry prometheus.Gatherer) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, m := range metricsOf(families) {
		text += fmt.Sprintf("%s %d/%v ", m.GetLabel()[0].GetValue(), m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
	}
	return text
}

func metricsOf(families []*dto.MetricFamily) (all []*dto.Metric) {
	for _, f := range families {
		all = append(all, f.GetMetric()...)
	}
	return all
}

func TestCreationDuration(t *testing.T) {
	const control, syncing, ready = tenancyv1alpha1.ConditionControlPlaneReady, tenancyv1alpha1.ConditionSyncing, tenancyv1alpha1.ConditionReady
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got := durations(t, registry); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	empty := created("a", "")
	m.observe(empty, created("a", ""), at(1))
	expect("ControlPlaneReady 0/0 Ready 0/0 Syncing 0/0 ")
	m.observe(empty, created("a", "https://a", control), at(2))
	expect("ControlPlaneReady 1/2 Ready 0/0 Syncing 0/0 ")
	m.observe(created("a", "https://a", control), created("a", "https://a", control, syncing, ready), at(5))
	expect("ControlPlaneReady 1/2 Ready 1/5 Syncing 1/5 ")

	// One that was ready before does not count again: after an outage, and in
	// another process.
	m.observe(created("a", "https://a"), created("a", "https://a", control, syncing, ready), at(50))
	m.observe(created("b", "https://b", control), created("b", "https://b", control, syncing, ready), at(50))
	expect("ControlPlaneReady 1/2 Ready 1/5 Syncing 1/5 ")

	// One that is deleted before it is ready leaves nothing behind.
	m.observe(created("c", ""), created("c", ""), at(1))
	m.forget("c")
	if len(m.reached) != 0 {
		t.Errorf("%d VirtualClusters are remembered", len(m.reached))
	}
	(*Metrics)(nil).observe(empty, empty, at(1))
	(*Metrics)(nil).forget("a")
}

// TestManyTenantsAddNoSeries: a thousand tenants have the series of one.
func TestManyTenantsAddNoSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	series := func() int {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return len(metricsOf(families))
	}
	before := series()
	for i := range 1000 {
		uid := types.UID(fmt.Sprint(i))
		m.observe(created(uid, ""), created(uid, "https://x", steps()...), at(int64(i)))
	}
	if after := series(); after != before {
		t.Errorf("1,000 tenants have %d series, and none %d", after, before)
	}
}
