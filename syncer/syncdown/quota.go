package syncdown

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// quota limits the copies of a tenant.
type quota struct {
	*session.Tenant

	usage  *limits.Usage
	limits limits.Limits
}

// reserve rejects a new or changed copy that would exceed a limit of the
// tenant, as [limits.Usage.Reserve] does.
func (s *quota) reserve(k *kinds.Kind, copied, was client.Object) (release func(), err error) {
	return s.usage.Reserve(s.Lane(), k, copied, was, s.Identity().Policy.Limits, s.limits)
}
