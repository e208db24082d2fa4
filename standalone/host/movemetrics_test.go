package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

// TestMoveMetrics: all series are there before the first move.
func TestMoveMetrics(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	m, err := newMoveMetrics(registry)
	g.Expect(err).NotTo(HaveOccurred())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(HaveLen(3))
	metricstest.Documented(t, "../../docs/metrics.md", families)
	before, err := testutil.GatherAndCount(registry)
	g.Expect(err).NotTo(HaveOccurred())
	for range 1000 {
		m.step(t.Context(), stepCopy, time.Now(), nil)
		m.step(t.Context(), stepPrepare, time.Now(), errors.New("any"))
		m.serves(true, time.Second)
		m.serves(false, time.Second)
	}
	g.Expect(testutil.GatherAndCount(registry)).To(Equal(before))
	_, err = newMoveMetrics(registry)
	g.Expect(err).To(HaveOccurred(), "registered twice")
}

func TestOutcomeOf(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"succeeded":       {t.Context(), nil, outcomeSucceeded},
		"no room":         {t.Context(), fmt.Errorf("copy: %w", &hosted.NoRoomError{}), outcomeRefused},
		"behind":          {t.Context(), transfer.ErrOutrun, outcomeRefused},
		"asked elsewhere": {t.Context(), errOutdated, outcomeInterrupted},
		"any other":       {t.Context(), errors.New("reset by peer"), outcomeFailed},
		"stopped":         {ended, context.Canceled, outcomeInterrupted},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(outcomeOf(test.ctx, test.err)).To(Equal(test.want)) })
	}
}
