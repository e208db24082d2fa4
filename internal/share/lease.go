package share

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Timing is how long leases last.
type Timing struct {
	// Duration is how long a lease has to be unchanged until other replicas
	// consider it expired, in whole seconds.
	Duration time.Duration
	// Term is how long a replica may write after a renewal. The rest of
	// Duration allows for requests in flight, and for clock drift.
	Term time.Duration
	// RenewEvery is the interval of renewals.
	RenewEvery time.Duration
}

// DefaultTiming returns the timing of leases that outlast a short outage of the
// super cluster.
func DefaultTiming() Timing {
	return Timing{Duration: 15 * time.Second, Term: 12 * time.Second, RenewEvery: 2 * time.Second}
}

const (
	// retryEvery is the delay after a failed renewal.
	retryEvery = time.Second
	// requestTimeout is the timeout of requests for leases.
	requestTimeout = 4 * time.Second
)

// viewAnnotation on a replica's lease has the replicas among which it divides
// the tenants.
const viewAnnotation = names.Domain + "/divided-among"

// ofReplicas is the label of the leases of a program's replicas.
const ofReplicas = names.Domain + "/replica-of"

// lease is the replica's own lease. Every write has the UID and the version of
// the lease that was read, so that it has no effect on a lease that others have
// deleted.
type lease struct {
	client     coordination.LeaseInterface
	fence      *fence
	name       string // which is also the replica's
	program    string
	duration   time.Duration
	renewEvery time.Duration

	mu   sync.Mutex
	last *coordinationv1.Lease // as last read or written; nil if there is none
	view view                  // for the next write
}

// newLease returns the lease of a replica of a program, with a unique name. It is
// created by acquire.
func newLease(client coordination.LeaseInterface, fence *fence, program string, timing Timing) *lease {
	return &lease{
		client: client, fence: fence, name: program + "-" + rand.String(10), program: program,
		duration: timing.Duration, renewEvery: timing.RenewEvery,
	}
}

// acquire renews the lease that the replica had, unless others have deleted it,
// or creates one without a view. It opens the fence.
func (l *lease) acquire(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		return l.lockedWrite(ctx)
	}
	err := l.lockedCreate(ctx)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// An earlier creation has succeeded without an answer.
	if err := l.lockedRead(ctx); err != nil {
		return err
	}
	return l.lockedUpdate(ctx)
}

func (l *lease) lockedCreate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent := time.Now()
	created, err := l.client.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.name, Labels: map[string]string{ofReplicas: l.program}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &l.name,
			LeaseDurationSeconds: new(int32(l.duration.Seconds())),
			AcquireTime:          &metav1.MicroTime{Time: sent},
			RenewTime:            &metav1.MicroTime{Time: sent},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the replica's lease %s: %w", l.name, err)
	}
	l.last = created
	return l.fence.current().renew(sent)
}

// publish writes a view. If it returns nil, the write has succeeded.
func (l *lease) publish(ctx context.Context, v view) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view = v
	return l.lockedWrite(ctx)
}

// keep renews the lease until ctx is done or the period ends.
func (l *lease) keep(ctx context.Context, during *period) {
	for next := l.renewEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-during.closed.Done():
			return
		case <-time.After(next):
		}
		next = l.renewEvery
		if err := l.renew(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot renew the replica's lease; retrying", "lease", l.name)
			next = retryEvery
		}
	}
}

func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lockedWrite(ctx)
}

// lockedWrite renews the lease, with the view. An earlier write without an
// answer may have succeeded: in this case the lease is read and written again.
func (l *lease) lockedWrite(ctx context.Context) error {
	err := l.lockedUpdate(ctx)
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	if err := l.lockedRead(ctx); err != nil {
		return err
	}
	return l.lockedUpdate(ctx)
}

func (l *lease) lockedUpdate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	next := l.last.DeepCopy()
	next.Annotations = map[string]string{viewAnnotation: l.view.String()}
	sent := time.Now()
	next.Spec.RenewTime = &metav1.MicroTime{Time: sent}
	written, err := l.client.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	l.last = written
	return l.fence.current().renew(sent)
}

// lockedRead reads a lease that has changed. If it was deleted or replaced,
// other replicas consider this one dead.
func (l *lease) lockedRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := l.client.Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && l.last != nil && now.UID != l.last.UID:
		l.last, l.view = nil, nil
		l.fence.current().close()
		return errLapsed
	case err != nil:
		return err
	}
	l.last = now
	return nil
}

// release deletes the lease of a replica that no longer serves any tenant.
func (l *lease) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return nil
	}
	err := l.client.Delete(ctx, l.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.last.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the replica's lease %s: %w", l.name, err)
	}
	return nil
}
