package bench

import (
	"maps"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	if err := fits(20, 8000); err != nil {
		t.Errorf("20 control planes do not fit into 8000 MiB: %v", err)
	}
	err := fits(100, 8000)
	if err == nil || !strings.Contains(err.Error(), "17524 MiB") || !strings.Contains(err.Error(), "8000 MiB") {
		t.Errorf("got %v, want what they need and what there is", err)
	}
}

// TestControlPlanes: the tenants of each scenario are counted, and of those that are not chosen none.
func TestControlPlanes(t *testing.T) {
	o := parsed(t, []string{"--throughput=100/30,20/10", "--tenants=7", "--churn-tenants=3", "--scenarios=throughput,hung,churn,idle"})
	got := map[string]int{}
	for _, s := range o.chosen() {
		got[s.name] = s.controlPlanes(&o.Sizes)
	}
	if want := map[string]int{"throughput": 30, "hung": 8, "churn": 4, "idle": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
