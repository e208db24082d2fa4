package patrol

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestPatrolMetrics(t *testing.T) {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if at := testutil.ToFloat64(m.ended); at != 0 {
		t.Errorf("before the first round it ended at %v", at)
	}
	before := time.Now()
	m.observe(before.Add(-time.Second))
	if at := testutil.ToFloat64(m.ended); at < float64(before.Unix()) {
		t.Errorf("it ended at %v, which is before %v", at, before)
	}
}
