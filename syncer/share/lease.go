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

const (
	// duration is how long a lease has to stand unchanged until others take its replica for dead.
	duration = 15 * time.Second
	// term is for how long after a renewal a replica writes: the rest of the duration is for requests on their way, and for clocks
	// that do not run alike.
	term = 12 * time.Second
	// renewEvery is how long a lease is left alone, retryEvery how long after a renewal that failed.
	renewEvery, retryEvery = 2 * time.Second, time.Second
	// requestTimeout is how long a request about leases may take.
	requestTimeout = 4 * time.Second
)

// Namespace is where the leases are by default. It is not the one that the program runs in: the names of leases cannot be told before,
// so the right to write them is one to all in the namespace.
const Namespace = "vc-syncer-replicas"

// viewAnnotation is on a replica's lease: the replicas among whom it takes the tenants to be divided.
const viewAnnotation = names.Domain + "/divided-among"

// ofReplicas selects the leases of replicas of a syncer.
const ofReplicas = names.Domain + "/replica-of"

// lease is a replica's own lease. Every write of it names the UID and the version that was read, so that one that was deleted is never
// made again.
type lease struct {
	client coordination.LeaseInterface
	fence  *fence

	mu   sync.Mutex
	last *coordinationv1.Lease // as it was last read or written
	view view                  // that is written from now on
}

// newLease makes what a replica's lease of a syncer begins as, with a name that no process had before.
func newLease(client coordination.LeaseInterface, fence *fence, syncer string) *lease {
	name := syncer + "-" + rand.String(10)
	return &lease{client: client, fence: fence, last: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ofReplicas: syncer}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &name,
			LeaseDurationSeconds: new(int32(duration.Seconds())),
		},
	}}
}

// name is the replica's name, too.
func (l *lease) name() string { return *l.last.Spec.HolderIdentity }

// create creates the lease, which claims nothing yet.
func (l *lease) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent := time.Now()
	l.last.Spec.AcquireTime = &metav1.MicroTime{Time: sent}
	l.last.Spec.RenewTime = l.last.Spec.AcquireTime
	created, err := l.client.Create(ctx, l.last, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the replica's lease %s: %w", l.name(), err)
	}
	l.last = created
	return l.fence.renew(sent)
}

// publish writes a view, and says whether that is known to have been done.
func (l *lease) publish(ctx context.Context, v view) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view = v
	return l.lockedWrite(ctx)
}

// keep renews the lease until ctx ends or the fence closes.
func (l *lease) keep(ctx context.Context) {
	for next := renewEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.fence.closed.Done():
			return
		case <-time.After(next):
		}
		next = renewEvery
		if err := l.renew(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot renew the replica's lease; it is tried again", "lease", l.name())
			next = retryEvery
		}
	}
}

func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lockedWrite(ctx)
}

// lockedWrite renews the lease, with the view. An earlier write of which no answer came may have been carried out: then the lease is
// read and written again.
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
	return l.fence.renew(sent)
}

// lockedRead reads a lease that is not as it was last seen. When it is gone, or another one, this replica is dead to the others.
func (l *lease) lockedRead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now, err := l.client.Get(ctx, l.name(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != l.last.UID:
		l.fence.close()
		return errLapsed
	case err != nil:
		return err
	}
	l.last = now
	return nil
}

// release deletes the lease of a replica that serves nothing any more.
func (l *lease) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.client.Delete(ctx, l.name(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.last.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the replica's lease %s: %w", l.name(), err)
	}
	return nil
}
