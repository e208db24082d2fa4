package app

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/egress"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// egressPolicy says what tenants' apiservers may connect to. agent is where they
// reach vn-agent, empty if they do not.
func (s *standalone) egressPolicy(ctx context.Context, super *rest.Config, agent string) (*egress.Policy, error) {
	internal := append(s.opts.servicePools(), s.podNetwork(), hosted.DefaultServiceCIDR, superSecondaryServiceCIDR)
	return s.opts.EgressPolicy(ctx, super, agent, internal, s.opts.SyncerOptions.Registerer)
}
