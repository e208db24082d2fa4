package bench

import (
	"maps"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	if err := (demand{20, 1250}).fits(8000); err != nil {
		t.Errorf("20 control planes do not fit into 8000 MiB: %v", err)
	}
	err := demand{100, 10_000}.fits(20_000)
	if err == nil || !strings.Contains(err.Error(), "23383 MiB") || !strings.Contains(err.Error(), "20000 MiB") {
		t.Errorf("got %v, want the needed and the available memory", err)
	}
}

// TestMost tests that the tenants and pods of each selected scenario are
// counted.
func TestMost(t *testing.T) {
	o := parsed(t, []string{
		"--throughput=100/30,200/10", "--tenants=7", "--churn-tenants=3", "--light-pods=10", "--hung-pods=5", "--greedy-pods=50",
		"--weighted-pods=9", "--scenarios=throughput,hung,churn,idle,greedy",
	})
	got := map[string]demand{}
	for _, s := range o.chosen() {
		got[s.name] = s.most(&o.Sizes)
	}
	want := map[string]demand{"throughput": {30, 200}, "hung": {8, 15}, "churn": {4, 3}, "idle": {1, 0}, "greedy": {7, 100}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
