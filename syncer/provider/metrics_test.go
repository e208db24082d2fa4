package provider

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

func TestTenantsAreCountedByHowTheyStandNow(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	red, blue, green := types.NamespacedName{Name: "red"}, types.NamespacedName{Name: "blue"}, types.NamespacedName{Name: "green"}
	m.forget(red) // was not known
	m.observe(red, "Starting")
	m.observe(red, "Ready")
	m.observe(red, "Ready")
	m.observe(blue, "Ready")
	m.observe(blue, "Unreachable")
	m.observe(green, "Unreachable")
	m.forget(green)
	m.forget(green)
	want := `
# HELP vc_syncer_tenants VirtualClusters by state: the reason of the condition Syncing, or Starting until the tenant's objects are synced for the first time.
# TYPE vc_syncer_tenants gauge
vc_syncer_tenants{reason="Ready"} 1
vc_syncer_tenants{reason="Starting"} 0
vc_syncer_tenants{reason="Unreachable"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "vc_syncer_tenants"); err != nil {
		t.Error(err)
	}
}
