package app

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/egress"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// egressPolicy says what tenants' apiservers may connect to. It follows the
// super cluster's pods and nodes until ctx ends. agent is where tenants'
// apiservers reach vn-agent, empty if they do not.
func (s *standalone) egressPolicy(ctx context.Context, super *rest.Config, agent string) (*egress.Policy, error) {
	client, err := kubernetes.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("make a client for pods and nodes: %w", err)
	}
	directory, err := egress.WatchSuperCluster(ctx, client)
	if err != nil {
		return nil, err
	}
	outside, err := egress.ParseOutside(s.opts.TenantEgress)
	if err != nil {
		return nil, fmt.Errorf("--tenant-egress-cidr: %w", err)
	}
	counters, err := egress.NewMetrics(s.opts.SyncerOptions.Registerer)
	if err != nil {
		return nil, err
	}
	policy := &egress.Policy{
		Directory: directory, Outside: outside, Agent: agent, Machine: egress.Machine, Metrics: counters,
	}
	for _, network := range append(s.opts.servicePools(), s.podNetwork(), hosted.DefaultServiceCIDR) {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return nil, fmt.Errorf("read a network of the super cluster: %w", err)
		}
		policy.Internal = append(policy.Internal, prefix)
	}
	return policy, nil
}
