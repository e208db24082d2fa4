// Package share divides the tenants among several replicas of a program, so that
// at most one of them serves a tenant at a time, and none writes after its
// lease has expired.
//
// Each replica has a Lease. It limits how long the replica may write, and
// publishes the replicas among which the replica divides the tenants, its view:
// it serves the tenants that rendezvous hashing among these assigns to it, and
// no others. When replicas come or go, each replica stops to serve tenants that
// are not assigned to it any more, waits until no request is in flight for
// them, publishes its new view, and reads the leases again; then it begins to
// serve the tenants that are assigned to it, except those that another lease
// still claims. Since every replica publishes before it reads, two replicas can
// never both begin.
//
// A replica whose lease has expired hands all its tenants over. It ends with an
// error, or, if it is to continue, shares the tenants again as soon as it can
// renew its lease: if no replica has deleted the lease, no other replica has begun to
// serve its tenants. Otherwise it creates a lease again, and begins as a new
// replica does.
package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// pollEvery is the interval of listing the leases of the others.
	pollEvery = time.Second
	// handOverTimeout limits the wait for requests in flight for tenants of
	// other replicas.
	handOverTimeout = 20 * time.Second
)

// Replica is this process as one of several that share the tenants. It is a
// runnable of a manager.
type Replica struct {
	lease   *lease
	peers   *peers
	fence   *fence
	metrics *Metrics
	serve   func(context.Context, Shares) error
	// continues is set if the replica continues after its lease has expired, and
	// joined once it had a lease.
	continues bool
	joined    atomic.Bool
}

// New returns a replica of the named program, with leases in a namespace of the
// super cluster. The program's own namespace does not do: the names of leases
// are not known in advance, so the role that allows writing them applies to all
// leases in the namespace. New uses the configuration for requests for leases
// only.
func New(super *rest.Config, namespace, program string, timing Timing, metrics *Metrics) (*Replica, error) {
	client, err := coordination.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("create the client for leases: %w", err)
	}
	return newReplica(client.Leases(namespace), program, timing, metrics), nil
}

func newReplica(client coordination.LeaseInterface, program string, timing Timing, metrics *Metrics) *Replica {
	fence := newFence(timing.Term)
	lease := newLease(client, fence, program, timing)
	return &Replica{
		lease:   lease,
		fence:   fence,
		metrics: metrics,
		peers:   &peers{client: client, self: lease.name, duration: timing.Duration, program: program, seen: map[string]sighting{}},
	}
}

// Guard makes requests with a configuration fail when the replica's lease
// expires.
func (r *Replica) Guard(config *rest.Config) { r.fence.guard(config) }

// Ready returns an error if the replica must not write now; nil if its lease is
// valid.
func (r *Replica) Ready() error { return r.fence.check(time.Now()) }

// Joined returns an error until the replica has had a lease for the first time.
func (r *Replica) Joined() error {
	if !r.joined.Load() {
		return errNotYet
	}
	return nil
}

// Continue makes the replica continue after its lease has expired, instead of
// ending with an error.
func (r *Replica) Continue() { r.continues = true }

// Others returns the number of other replicas, which may take over what this one
// hands over.
func (r *Replica) Others(ctx context.Context) (int, error) { return r.peers.count(ctx) }

// Serve sets the function that serves shares. It is called whenever the shares
// change, and returns when no request is in flight for tenants that it no
// longer serves.
func (r *Replica) Serve(serve func(context.Context, Shares) error) { r.serve = serve }

// Start shares the tenants until ctx is done, and then hands its tenants over.
// Unless the replica continues, it returns an error when its lease could not be
// renewed.
func (r *Replica) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("share").WithValues("replica", r.lease.name)
	ctx = log.IntoContext(ctx, logger)
	for {
		err := r.hold(ctx)
		if err == nil || !r.continues {
			return err
		}
		if ctx.Err() == nil {
			logger.Error(err, "This replica has no valid lease, and serves no tenant as the only one; retrying")
		}
		r.suspend(ctx)
		select {
		case <-ctx.Done():
			r.release(ctx)
			return nil
		case <-time.After(retryEvery):
		}
	}
}

// hold shares the tenants from when the replica has a lease until ctx is done, or
// the lease has expired, which is an error.
func (r *Replica) hold(ctx context.Context) error {
	during := r.fence.begin()
	if err := r.lease.acquire(ctx); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Sharing the tenants with other replicas")
	r.joined.Store(true)
	r.metrics.open(during)
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { r.lease.keep(living, during) })
	work.Go(func() { during.watch(living) })
	err := r.divide(ctx, during)
	if err == nil {
		err = r.handOver(living, Shares{})
	}
	during.close()
	end()
	work.Wait()
	if err == nil {
		r.release(ctx)
	}
	return err
}

// suspend hands over all tenants after the period in which the replica could write
// for them. It returns when that is done, or at the end of an attempt after ctx.
func (r *Replica) suspend(ctx context.Context) {
	for {
		err := r.handOver(context.WithoutCancel(ctx), Shares{})
		if err == nil {
			return
		}
		log.FromContext(ctx).Error(err, "Cannot hand over the tenants; retrying")
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryEvery):
		}
	}
}

// release deletes the lease of a replica that serves no tenant any more, so that
// others need not wait until it expires.
func (r *Replica) release(ctx context.Context) {
	if err := r.lease.release(context.WithoutCancel(ctx)); err != nil {
		log.FromContext(ctx).Error(err, "Others wait until the lease of this replica expires")
	}
}

// divide follows changes of the leases until ctx is done, or the period ends.
func (r *Replica) divide(ctx context.Context, during *period) error {
	polling, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(during.closed, cancel)()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	d := &division{Replica: r, member: &member{replica: r.lease.name}}
	for {
		err := d.poll(polling)
		switch {
		case ctx.Err() != nil:
			return nil
		case during.isClosed(), errors.Is(err, errLapsed):
			return errLapsed
		case errors.Is(err, errStuck):
			return err
		case err != nil:
			log.FromContext(ctx).Error(err, "Cannot divide the tenants; retrying")
		}
		select {
		case <-polling.Done():
		case <-ticker.C:
		}
	}
}

// errStuck is returned by a replica that cannot hand over its tenants.
var errStuck = errors.New("requests for tenants of other replicas do not end")

// handOver serves shares, and waits until no other tenant is served.
func (r *Replica) handOver(ctx context.Context, shares Shares) error {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := r.serve(ctx, shares); err != nil {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return nil
}
