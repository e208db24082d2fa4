package installation

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/rbac"
)

// Leases returns the Leases of a component: that of the leader, and those of
// replicas that all work.
func Leases(ctx context.Context, super client.Reader, namespace, component string) ([]coordinationv1.Lease, error) {
	found := &coordinationv1.LeaseList{}
	leader := client.MatchingFields{"metadata.name": component}
	if err := super.List(ctx, found, client.InNamespace(namespace), leader); err != nil {
		return nil, fmt.Errorf("list the Leases of %s: %w", component, err)
	}
	shared := map[string]string{
		Syncer: rbac.ReplicasNamespace, Host: rbac.HostReplicasNamespace,
	}[component]
	if shared == "" {
		return found.Items, nil
	}
	replicas := &coordinationv1.LeaseList{}
	if err := super.List(ctx, replicas, client.InNamespace(shared)); err != nil {
		return nil, fmt.Errorf("list the Leases of the replicas of %s: %w", component, err)
	}
	return append(found.Items, replicas.Items...), nil
}
