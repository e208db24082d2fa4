package engine

import (
	"time"

	"github.com/virtualcluster/virtualcluster/syncer/custom"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/syncer/pace"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// shared is what the engagements of all tenants share.
type shared struct {
	*session.SuperCluster

	custom     *custom.Resources
	crds       *sharedcrds.Shared
	networks   *networks.Template // nil without networks
	providers  *networks.Providers
	nodeLinger time.Duration
	timeout    time.Duration
	interval   time.Duration // of the patrol
	validation *validation.Gate
	limits     limits.Limits
	usage      *limits.Usage
	metrics    *Metrics
	// changed is [Options.Changed].
	changed func(tenant string, at time.Time, urgent bool)
	// watching is closed when the objects of the super cluster are known.
	watching chan struct{}
	// beginning limits how many tenants open their watches at a time.
	beginning turns
	// usual is how long the super cluster takes to answer.
	usual pace.Usual
}

// known reports whether the objects of the super cluster are known. Before
// that, a handler that reads the cache of another kind would wait for it, even
// while the syncer is being stopped. No tenant has begun then, and each reads
// all objects when it does.
func (s *shared) known() bool {
	select {
	case <-s.watching:
		return true
	default:
		return false
	}
}
