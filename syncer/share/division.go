package share

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// division is how the tenants are divided, as one replica sees it.
type division struct {
	*Replica
	*member

	served Shares
}

// look reads the leases of the others and acts upon them, until there is nothing more to do.
func (d *division) look(ctx context.Context) error {
	for {
		others, err := d.peers.list(ctx)
		if err != nil {
			return err
		}
		shares, publish := d.see(others)
		if err := d.act(ctx, shares); err != nil || !publish {
			return err
		}
		if err := d.lease.publish(ctx, d.view); err != nil {
			return err
		}
		d.wrote()
		log.FromContext(ctx).Info("The tenants are divided", "among", d.view)
		d.metrics.replicas.Set(float64(len(d.view)))
	}
}

// act has shares served that are others than before.
func (d *division) act(ctx context.Context, shares Shares) error {
	if shares.equal(d.served) {
		return nil
	}
	if err := d.letGo(ctx, shares); err != nil {
		return err
	}
	d.served = shares
	return nil
}
