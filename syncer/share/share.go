// Package share divides the tenants among several replicas of a syncer, so that each is served by one of them at a time, and none
// writes after its lease is gone.
//
// Each replica has one Lease. It says for how long the replica may write, and among whom the replica takes the tenants to be divided:
// it serves what rendezvous hashing among these gives to it, and no more. When replicas come or go, each lets go of what is not its own
// any more, waits until nothing is in flight for that, publishes its new view, and reads the leases again; it begins to serve what is
// its own now when no other lease still claims it. Since everybody publishes before reading, two can never both begin.
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
	// lookEvery is how often the leases of the others are listed.
	lookEvery = time.Second
	// letGoTimeout is how long it may take until nothing is in flight any more for tenants that others are to have.
	letGoTimeout = 20 * time.Second
)

// Replica is this process as one of several that share the tenants. It runs as a runnable of a manager.
type Replica struct {
	lease   *lease
	peers   *peers
	fence   *fence
	metrics *Metrics
	serve   func(context.Context, Shares) error
}

// New makes a replica of the syncer of that name, whose leases are in a namespace of the super cluster. The configuration is for
// requests about leases alone.
func New(super *rest.Config, namespace, syncer string, metrics *Metrics) (*Replica, error) {
	client, err := coordination.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("making the client of the replicas' leases: %w", err)
	}
	fence := newFence()
	lease := newLease(client.Leases(namespace), fence, syncer)
	return &Replica{
		lease:   lease,
		fence:   fence,
		metrics: metrics,
		peers:   &peers{client: lease.client, self: lease.name(), syncer: syncer, seen: map[string]sighting{}},
	}, nil
}

// Guard has what is sent with a configuration end with the replica's lease.
func (r *Replica) Guard(config *rest.Config) { r.fence.guard(config) }

// Ready returns why the replica may not write now; nil if its lease is valid.
func (r *Replica) Ready() error { return r.fence.check(time.Now()) }

// Serve tells how tenants are served: serve is called whenever the shares change, and returns when nothing is in flight any more for
// tenants that they do not keep.
func (r *Replica) Serve(serve func(context.Context, Shares) error) { r.serve = serve }

// Start takes part until ctx ends, when it hands its tenants over, or until its lease could not be renewed, which is an error.
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

// divide looks for changes until ctx ends.
func (r *Replica) divide(ctx context.Context) error {
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.fence.closed, cancel)()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	d := &division{Replica: r, member: &member{replica: r.lease.name()}}
	for {
		err := d.look(looking)
		switch {
		case ctx.Err() != nil:
			return nil
		case r.fence.closed.Err() != nil, errors.Is(err, errLapsed):
			return errLapsed
		case errors.Is(err, errStuck):
			return err
		case err != nil:
			log.FromContext(ctx).Error(err, "Cannot look for other replicas; it is tried again")
		}
		select {
		case <-looking.Done():
		case <-ticker.C:
		}
	}
}

// leave lets go of all tenants and then of the lease, so that others need not wait until it runs out.
func (r *Replica) leave(ctx context.Context) error {
	if err := r.letGo(ctx, Shares{}); err != nil {
		return err
	}
	r.fence.close()
	return r.lease.release(ctx)
}

// errStuck is why a replica ends that cannot let go of its tenants.
var errStuck = errors.New("the work for tenants that are to be another replica's does not end; this one ends, to be started anew")

// letGo has shares served, and waits until nothing else is.
func (r *Replica) letGo(ctx context.Context, shares Shares) error {
	ctx, cancel := context.WithTimeout(ctx, letGoTimeout)
	defer cancel()
	if err := r.serve(ctx, shares); err != nil {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return nil
}
