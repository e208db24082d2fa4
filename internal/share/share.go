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
package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	fence := newFence(timing.Term)
	lease := newLease(client.Leases(namespace), fence, program, timing)
	return &Replica{
		lease:   lease,
		fence:   fence,
		metrics: metrics,
		peers:   &peers{client: lease.client, self: lease.name(), duration: timing.Duration, program: program, seen: map[string]sighting{}},
	}, nil
}

// Guard makes requests with a configuration fail when the replica's lease
// expires.
func (r *Replica) Guard(config *rest.Config) { r.fence.guard(config) }

// Ready returns an error if the replica must not write now; nil if its lease is
// valid.
func (r *Replica) Ready() error { return r.fence.check(time.Now()) }

// Others returns the number of other replicas, which may take over what this one
// hands over.
func (r *Replica) Others(ctx context.Context) (int, error) { return r.peers.count(ctx) }

// Serve sets the function that serves shares. It is called whenever the shares
// change, and returns when no request is in flight for tenants that it no
// longer serves.
func (r *Replica) Serve(serve func(context.Context, Shares) error) { r.serve = serve }

// Start shares the tenants until ctx is done, and then hands its tenants over,
// or until its lease could not be renewed, which is an error.
func (r *Replica) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("share").WithValues("replica", r.lease.name())
	ctx = log.IntoContext(ctx, logger)
	if err := r.lease.create(ctx); err != nil {
		return err
	}
	logger.Info("Sharing the tenants with other replicas")
	r.metrics.open(r.fence)
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { r.lease.keep(living) })
	work.Go(func() { r.fence.watch(living) })
	err := r.divide(ctx)
	if err == nil {
		err = r.leave(living)
	}
	r.fence.close()
	end()
	work.Wait()
	return err
}

// divide follows changes of the leases until ctx is done.
func (r *Replica) divide(ctx context.Context) error {
	polling, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.fence.closed, cancel)()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	d := &division{Replica: r, member: &member{replica: r.lease.name()}}
	for {
		err := d.poll(polling)
		switch {
		case ctx.Err() != nil:
			return nil
		case r.fence.closed.Err() != nil, errors.Is(err, errLapsed):
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

// leave hands over all tenants and deletes the lease, so that others need not
// wait until it expires.
func (r *Replica) leave(ctx context.Context) error {
	if err := r.handOver(ctx, Shares{}); err != nil {
		return err
	}
	r.fence.close()
	return r.lease.release(ctx)
}

// errStuck is returned by a replica that cannot hand over its tenants.
var errStuck = errors.New("requests for tenants of other replicas do not end; exiting to be restarted")

// handOver serves shares, and waits until no other tenant is served.
func (r *Replica) handOver(ctx context.Context, shares Shares) error {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if err := r.serve(ctx, shares); err != nil {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return nil
}
