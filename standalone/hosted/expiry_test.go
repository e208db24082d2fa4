package hosted

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

// TestExpiries: the certificates of a control plane that is ready count, by kind.
func TestExpiries(t *testing.T) {
	g := NewWithT(t)
	starting := &ControlPlane{ready: make(chan struct{})}
	ready := &ControlPlane{ready: make(chan struct{}), creds: load(t, t.TempDir(), "a")}
	close(ready.ready)
	h := &Host{planes: map[string]*ControlPlane{"starting": starting, "ready": ready}}
	found := maps.Collect(h.expiries)
	g.Expect(found).To(HaveLen(3))
	year := time.Now().Add(defaultValidity)
	g.Expect(found[kindServer]).To(BeTemporally("~", year, time.Minute))
	g.Expect(found[kindClient]).To(BeTemporally("~", year, time.Minute))
	g.Expect(found[kindAuthority]).To(BeTemporally("~", time.Now().Add(authorityValidity), time.Minute))

	registry := prometheus.NewRegistry()
	registry.MustRegister(newExpiryCollector(h.expiries))
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(HaveLen(2))
	metricstest.Documented(t, "../../docs/metrics.md", families)
}
