package engine

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// The ends of latencies.
const (
	untilCopied  = "copied"
	untilRunning = "running"
)

// latencies are the new objects of a tenant whose latency is being measured:
// from the tenant's event to the copy, and for mirrored objects until the tenant
// can read that they run. The zero value is empty.
type latencies struct {
	mu    sync.Mutex
	known map[kinds.ObjectKey]latency
}

// latency is the state of one measurement.
type latency struct {
	since  time.Time
	copied bool
}

// begin begins to measure the latency of a new object of the tenant. Objects
// that are synced on demand are not measured: they may never be needed.
func (l *latencies) begin(k *kinds.Kind, key client.ObjectKey, now time.Time) {
	if k.Down == nil || k.Down.OnDemand {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[kinds.ObjectKey]latency{}
	}
	l.known[kinds.ObjectKey{Kind: k.Name, Key: key}] = latency{since: now}
}

// get returns the measurement of an object, if there is one.
func (l *latencies) get(k *kinds.Kind, key client.ObjectKey) (latency, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.known[kinds.ObjectKey{Kind: k.Name, Key: key}]
	return m, ok
}

// set continues the measurement of an object; an ended one is dropped.
func (l *latencies) set(k *kinds.Kind, key client.ObjectKey, m latency, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended {
		delete(l.known, kinds.ObjectKey{Kind: k.Name, Key: key})
		return
	}
	l.known[kinds.ObjectKey{Kind: k.Name, Key: key}] = m
}

// measure observes the latency of a new object that has just been reconciled.
func (l *latencies) measure(
	ctx context.Context, s *session.Session, metrics *Metrics, k *kinds.Kind, key client.ObjectKey,
) error {
	m, ok := l.get(k, key)
	if !ok {
		return nil
	}
	tenant, err := s.TenantObject(ctx, k, key)
	if err != nil {
		return err
	}
	if tenant == nil {
		l.set(k, key, m, true)
		return nil
	}
	super, err := s.SuperObject(ctx, k, k.Down.SuperKey(s.Identity(), key))
	if err != nil || super == nil || translate.OriginOf(super).UID != tenant.GetUID() {
		return err
	}
	if !m.copied {
		m.copied = true
		metrics.observeLatency(k.Name, untilCopied, m.since)
	}
	runs := k.Down.Mirror != nil && k.Down.Mirror.Running(tenant)
	if runs {
		metrics.observeLatency(k.Name, untilRunning, m.since)
	}
	l.set(k, key, m, runs || k.Down.Mirror == nil || k.Down.Mirror.Ended(tenant))
	return nil
}
