package share

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// division is the division of the tenants among the replicas, as seen by one of
// them.
type division struct {
	*Replica
	*member

	served Shares
}

// poll reads the leases of the other replicas and applies them, until its own
// view is published.
func (d *division) poll(ctx context.Context) error {
	for {
		others, err := d.peers.list(ctx)
		if err != nil {
			return err
		}
		shares, publish := d.observe(others)
		if err := d.apply(ctx, shares); err != nil || !publish {
			return err
		}
		if err := d.lease.publish(ctx, d.view); err != nil {
			return err
		}
		d.wrote()
		log.FromContext(ctx).Info("Divided the tenants", "among", d.view)
		d.metrics.replicas.Set(float64(len(d.view)))
	}
}

// apply starts to serve shares, if they differ from those served.
func (d *division) apply(ctx context.Context, shares Shares) error {
	if shares.equal(d.served) {
		return nil
	}
	if err := d.handOver(ctx, shares); err != nil {
		return err
	}
	d.served = shares
	return nil
}
