package host

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

// TestHandovers: hand-overs are counted by reason and result, and those of a
// thousand control planes add no series.
func TestHandovers(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	h, err := newHandovers(registry)
	g.Expect(err).NotTo(HaveOccurred())
	gather := func() []*dto.Metric {
		families, err := registry.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(families).To(HaveLen(1))
		metricstest.Documented(t, "../../docs/metrics.md", families)
		return families[0].GetMetric()
	}
	series := len(gather())
	now := time.Now()
	for i := range 1000 {
		h.begin(keyOf(fmt.Sprint("tenant-", i)), reasonLeaseExpired, now)
		h.end(keyOf(fmt.Sprint("tenant-", i)), resultTakenBack, now.Add(2*time.Second))
	}
	h.begin(keyOf("red"), reasonDivision, now)
	h.end(keyOf("red"), resultTakenOver, now.Add(time.Second))
	h.end(keyOf("red"), resultTakenOver, now.Add(time.Hour))
	h.end(keyOf("never given up"), resultTakenOver, now)
	h.begin(keyOf("deleted"), reasonLeaving, now)
	h.forget(keyOf("deleted"))
	h.end(keyOf("deleted"), resultTakenOver, now)

	all := gather()
	g.Expect(all).To(HaveLen(series))
	g.Expect(h.begun).To(BeEmpty())
	found := map[string]string{}
	for _, m := range all {
		if of := m.GetHistogram(); of.GetSampleCount() > 0 {
			found[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = fmt.Sprintf("%d %.0f", of.GetSampleCount(), of.GetSampleSum())
		}
	}
	g.Expect(found).To(Equal(map[string]string{"lease_expired taken_back": "1000 2000", "division taken_over": "1 1"}))
}
