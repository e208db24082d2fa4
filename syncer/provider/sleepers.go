package provider

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

const (
	// mostIdle is the number of tenants that do not sleep and whose changes are
	// remembered regardless of their age, and remembered is how long those of
	// more tenants are.
	mostIdle   = 1024
	remembered = 10 * time.Minute
)

// sleepers records which tenants' control planes sleep, and what has changed in
// the super cluster that they have not seen.
type sleepers struct {
	// interval is the minimum time between two wakes of a tenant for changes
	// that are not urgent.
	interval time.Duration

	mu      sync.Mutex
	tenants map[string]*sleeper // by cluster key
	purgeAt int
}

// sleeper is one tenant. A change may be recorded before the tenant is known to
// sleep.
type sleeper struct {
	vc     types.NamespacedName
	asleep bool
	since  time.Time
	// urgent and other are the times of the last changes in the super cluster.
	urgent, other time.Time
	// woken is when the tenant was last woken for a change that was not urgent.
	woken time.Time
}

func newSleepers(interval time.Duration) *sleepers {
	return &sleepers{interval: interval, tenants: map[string]*sleeper{}, purgeAt: mostIdle}
}

// due returns when the tenant has to be woken because of a change that it has
// not seen; zero for never.
func (s *sleeper) due(interval time.Duration) time.Time {
	switch {
	case s.asleep && s.urgent.After(s.since):
		return s.urgent
	case s.asleep && s.other.After(s.since):
		return latest(s.other, s.woken.Add(interval))
	default:
		return time.Time{}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// change records a change of a tenant's object in the super cluster. It returns
// the VirtualCluster to reconcile if the tenant sleeps and has to be woken
// earlier than before.
func (s *sleepers) change(key string, at time.Time, urgent bool) (vc types.NamespacedName, earlier bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lockedGet(key)
	before := t.due(s.interval)
	if urgent {
		t.urgent = latest(t.urgent, at)
	} else {
		t.other = latest(t.other, at)
	}
	now := t.due(s.interval)
	return t.vc, !now.IsZero() && (before.IsZero() || now.Before(before))
}

// sleep records that a tenant sleeps, and returns when it has to be woken; zero
// for never.
func (s *sleepers) sleep(key string, vc types.NamespacedName, since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lockedGet(key)
	t.vc, t.asleep, t.since = vc, true, since
	return t.due(s.interval)
}

// wake records that a tenant that has to be woken is being woken.
func (s *sleepers) wake(key string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.lockedGet(key); !t.urgent.After(t.since) {
		t.woken = now
	}
}

// awake records that a tenant does not sleep.
func (s *sleepers) awake(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[key]; t != nil {
		t.asleep = false
	}
}

// forget drops a tenant.
func (s *sleepers) forget(vc types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, t := range s.tenants {
		if t.vc == vc {
			delete(s.tenants, key)
		}
	}
}

func (s *sleepers) lockedGet(key string) *sleeper {
	if t := s.tenants[key]; t != nil {
		return t
	}
	if len(s.tenants) >= s.purgeAt {
		s.lockedPurge(time.Now())
	}
	t := &sleeper{}
	s.tenants[key] = t
	return t
}

// lockedPurge drops old changes of tenants that do not sleep. They may have been
// deleted.
func (s *sleepers) lockedPurge(now time.Time) {
	for key, t := range s.tenants {
		if !t.asleep && now.Sub(latest(latest(t.urgent, t.other), t.woken)) > remembered {
			delete(s.tenants, key)
		}
	}
	s.purgeAt = 2*len(s.tenants) + mostIdle
}

// Changed records that an object of a tenant has changed in the super cluster.
// If the tenant sleeps, it is woken: at once for an urgent change, such as a pod
// that ended, and otherwise after a while.
func (p *Provider) Changed(tenant string, at time.Time, urgent bool) {
	vc, earlier := p.sleepers.change(tenant, at, urgent)
	if !earlier {
		return
	}
	select {
	case <-p.started:
	default:
		return // each VirtualCluster is reconciled at the start
	}
	// It must not block the caller, which handles events.
	go p.changed(p.ctx, &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: vc.Namespace, Name: vc.Name}})
}

// rest disengages a tenant whose control plane sleeps or is paused, which closes
// its watches, and reports that. It returns when to reconcile again. Copies stay
// in the super cluster as they are.
func (p *Provider) rest(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, awake *metav1.Condition) (time.Duration, error) {
	key := client.ObjectKeyFromObject(vc)
	p.disengage(key)
	if awake.Reason == tenancyv1alpha1.ReasonPaused {
		return 0, p.report(ctx, vc, problem{
			tenancyv1alpha1.ReasonPaused, "The tenant is paused: nothing is synced, and running pods keep running", nil,
		})
	}
	due := p.sleepers.sleep(vc.Status.ClusterNamespace, key, awake.LastTransitionTime.Time)
	now := time.Now()
	if !due.IsZero() && now.Before(due) {
		return due.Sub(now), p.reportAsleep(ctx, vc, false)
	}
	if !due.IsZero() {
		p.sleepers.wake(vc.Status.ClusterNamespace, now)
	}
	return 0, p.reportAsleep(ctx, vc, !due.IsZero())
}

// reportAsleep applies the conditions of a tenant that sleeps, which is no
// failure: all of its objects were synced before. A request to wake it stands
// until it is engaged.
func (p *Provider) reportAsleep(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, wake bool) error {
	p.metrics.observe(client.ObjectKeyFromObject(vc), tenancyv1alpha1.ReasonAsleep)
	syncing := metav1.Condition{
		Type: tenancyv1alpha1.ConditionSyncing, Status: metav1.ConditionTrue, Reason: tenancyv1alpha1.ReasonAsleep,
		Message: "The tenant's control plane sleeps, so there is nothing to sync",
	}
	was := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
	if wake || was != nil && was.Reason == tenancyv1alpha1.ReasonWakeNeeded {
		syncing.Reason = tenancyv1alpha1.ReasonWakeNeeded
		syncing.Message = "Objects of the tenant have changed in the super cluster; they are synced when its control plane is awake"
	}
	all := []metav1.Condition{syncing}
	if synced := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSynced); synced != nil {
		all = append(all, *synced)
	}
	return p.apply(ctx, vc, all)
}

// resting returns the condition of a control plane that sleeps, is about to, or
// is paused; nil for one that is awake.
func resting(vc *tenancyv1alpha1.VirtualCluster) *metav1.Condition {
	awake := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
	if awake == nil || awake.Status != metav1.ConditionFalse {
		return nil
	}
	return awake
}
