package virtualcluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// steps returns the conditions of a VirtualCluster that is created, in the order
// in which they become true.
func steps() []string {
	return []string{tenancyv1alpha1.ConditionControlPlaneReady, tenancyv1alpha1.ConditionSyncing, tenancyv1alpha1.ConditionReady}
}

// Metrics are the metrics of the reconciler. A nil one records nothing.
type Metrics struct {
	creation *prometheus.HistogramVec

	mu sync.Mutex
	// reached has how many steps were recorded, by the UID of VirtualClusters that
	// have not been Ready yet. Those that another process began to create are left
	// out.
	reached map[types.UID]int
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		creation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "vc_manager_creation_duration_seconds",
			Help: "Time from the creation of a VirtualCluster until it was ready, by step: " +
				"the condition that was true for the first time.",
			Buckets: []float64{0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600},
		}, []string{"step"}),
		reached: map[types.UID]int{},
	}
	for _, step := range steps() {
		m.creation.WithLabelValues(step)
	}
	if err := registerer.Register(m.creation); err != nil {
		return nil, fmt.Errorf("register the metrics of VirtualClusters: %w", err)
	}
	return m, nil
}

// observe records the steps that a VirtualCluster has reached since its former
// status.
func (m *Metrics) observe(before, vc *tenancyv1alpha1.VirtualCluster, now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	reached, known := m.reached[vc.UID]
	if !vc.DeletionTimestamp.IsZero() || !known && before.Status.Endpoint != "" {
		return // it is deleted, or was ready before this process saw it
	}
	all := steps()
	for ; reached < len(all) && meta.IsStatusConditionTrue(vc.Status.Conditions, all[reached]); reached++ {
		m.creation.WithLabelValues(all[reached]).Observe(now.Sub(vc.CreationTimestamp.Time).Seconds())
	}
	m.reached[vc.UID] = reached
	if reached == len(all) {
		delete(m.reached, vc.UID)
	}
}

// forget forgets a VirtualCluster that is deleted.
func (m *Metrics) forget(uid types.UID) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reached, uid)
}
