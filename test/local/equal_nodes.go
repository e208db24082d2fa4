package local

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// compareNodes compares the tenant's virtual nodes with the nodes of its pods.
func (c *comparison) compareNodes(ctx context.Context, tenant client.Client) error {
	pods, nodes := &corev1.PodList{}, &corev1.NodeList{}
	if err := tenant.List(ctx, pods); err != nil {
		return fmt.Errorf("list the tenant's pods: %w", err)
	}
	if err := tenant.List(ctx, nodes, client.HasLabels{names.FromSuper}); err != nil {
		return fmt.Errorf("list the tenant's nodes: %w", err)
	}
	shown := map[string]bool{}
	for _, n := range nodes.Items {
		shown[n.Name] = false
	}
	for _, p := range pods.Items {
		if _, ok := shown[p.Spec.NodeName]; !ok && p.Spec.NodeName != "" {
			c.found = append(c.found, fmt.Sprintf("Node %s: is missing, and pod %s is bound to it", p.Spec.NodeName, p.Name))
			continue
		}
		shown[p.Spec.NodeName] = true
	}
	for name, used := range shown {
		if !used {
			c.found = append(c.found, fmt.Sprintf("Node %s: exists without a pod", name))
		}
	}
	return nil
}
