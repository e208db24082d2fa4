package hosted

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const (
	// maxDamages limits the damaged objects that are reported of a control plane.
	maxDamages = 100
	// damageTimeout limits how long a report waits for etcd, in this process.
	damageTimeout = time.Second
)

// damages are the stored objects of control planes that cannot be decoded.
type damages struct {
	mu        sync.Mutex // guards all below
	byControl map[string]map[string]*damage
}

// damage is one of them.
type damage struct {
	found *views.DecodeError
	sum   [sha256.Size]byte // of the stored value when it was reported first; zero before
}

// add adds an object of a control plane.
func (d *damages) add(name string, found *views.DecodeError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byControl == nil {
		d.byControl = map[string]map[string]*damage{}
	}
	all := d.byControl[name]
	if all == nil {
		all = map[string]*damage{}
		d.byControl[name] = all
	}
	if len(all) < maxDamages {
		all[found.Kind+" "+found.Name] = &damage{found: found}
	}
}

// forget removes the objects of a control plane that has ended.
func (d *damages) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byControl, name)
}

// of returns the errors of the objects of a control plane, without those that
// have been written or deleted since the last call.
func (d *damages) of(name string, stored *feed.Feed) map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), damageTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	errs := map[string]error{}
	for object, each := range d.byControl[name] {
		value, err := stored.Get(ctx, name, each.found.Resource, each.found.Name)
		if sum := sha256.Sum256(value); err == nil {
			if value == nil || each.sum != [sha256.Size]byte{} && each.sum != sum {
				delete(d.byControl[name], object)
				continue
			}
			each.sum = sum
		}
		errs[object] = each.found.Unwrap()
	}
	return errs
}
