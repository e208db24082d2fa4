package host

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// The reasons and results of hand-overs in metrics.
const (
	reasonDivision     = "division"
	reasonLeaving      = "leaving"
	reasonLeaseExpired = "lease_expired"

	resultTakenOver = "taken_over"
	resultTakenBack = "taken_back"
)

// handovers measures how long control planes that this replica has given up are
// without controllers. No label names a control plane.
type handovers struct {
	seconds *prometheus.HistogramVec

	mu    sync.Mutex
	begun map[types.NamespacedName]handover
}

// handover is one that has not ended.
type handover struct {
	reason string
	at     time.Time
}

// newHandovers creates and registers the metrics.
func newHandovers(registerer prometheus.Registerer) (*handovers, error) {
	h := &handovers{begun: map[types.NamespacedName]handover{}, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "vc_host_handover_duration_seconds",
		Help: "Time from when this replica gave up a control plane until the result, by reason: division, another replica joined; " +
			"leaving, this one stops; or lease_expired; and by result: taken_over, another replica serves it, or taken_back.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
	}, []string{"reason", "result"})}
	for _, reason := range []string{reasonDivision, reasonLeaving, reasonLeaseExpired} {
		for _, result := range []string{resultTakenOver, resultTakenBack} {
			h.seconds.WithLabelValues(reason, result)
		}
	}
	if err := registerer.Register(h.seconds); err != nil {
		return nil, fmt.Errorf("register the metrics of hand-overs: %w", err)
	}
	return h, nil
}

// begin records that a control plane is given up.
func (h *handovers) begin(key types.NamespacedName, reason string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun[key] = handover{reason, now}
}

// end records the result, if the control plane was given up.
func (h *handovers) end(key types.NamespacedName, result string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of, ok := h.begun[key]; ok {
		delete(h.begun, key)
		h.seconds.WithLabelValues(of.reason, result).Observe(now.Sub(of.at).Seconds())
	}
}

// forget records that a control plane does not exist any more.
func (h *handovers) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.begun, key)
}
