package local

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func configMapFacts(c *corev1.ConfigMap) map[string]any {
	return map[string]any{"data": c.Data, "binary data": c.BinaryData, "immutable": ptr.Deref(c.Immutable, false)}
}

func secretFacts(s *corev1.Secret) map[string]any {
	return map[string]any{"data": s.Data, "immutable": ptr.Deref(s.Immutable, false)}
}

// serviceFacts omits the fields that each side allocates itself.
func serviceFacts(s *corev1.Service) map[string]any {
	return map[string]any{
		"type":     s.Spec.Type,
		"headless": s.Spec.ClusterIP == corev1.ClusterIPNone,
		"ports": texts(s.Spec.Ports, func(p corev1.ServicePort) string {
			return fmt.Sprintf("%s %s %d to %s", p.Name, p.Protocol, p.Port, p.TargetPort.String())
		}),
		"selector":      s.Spec.Selector,
		"external name": s.Spec.ExternalName,
		"load balancer": fmt.Sprint(s.Status.LoadBalancer.Ingress),
	}
}

// podFacts omits timestamps: the syncer does not send a request that changes
// nothing else.
func podFacts(p *corev1.Pod) map[string]any {
	return map[string]any{
		"images": texts(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) string {
			return c.Name + " " + c.Image
		}),
		"deadline":  ptr.Deref(p.Spec.ActiveDeadlineSeconds, 0),
		"node":      p.Spec.NodeName,
		"phase":     p.Status.Phase,
		"reason":    p.Status.Reason,
		"message":   p.Status.Message != "", // each side has its own messages
		"addresses": fmt.Sprint(p.Status.PodIPs),
		"containers": texts(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) string {
			return fmt.Sprintf("%s %s ready=%t restarts=%d running=%t terminated=%t",
				s.Name, s.Image, s.Ready, s.RestartCount, s.State.Running != nil, s.State.Terminated != nil)
		}),
		"conditions": texts(slices.DeleteFunc(slices.Clone(p.Status.Conditions), isCustom), func(c corev1.PodCondition) string {
			return fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
		}),
	}
}

// isCustom reports whether a condition type is not built into Kubernetes. The
// tenant's controllers may set such a condition, which the copy need not have.
func isCustom(c corev1.PodCondition) bool { return strings.Contains(string(c.Type), "/") }

// texts returns the distinct texts of items, sorted.
func texts[T any](of []T, text func(T) string) []string {
	all := make([]string, len(of))
	for i := range of {
		all[i] = text(of[i])
	}
	slices.Sort(all)
	return all
}

// sliceFacts omits target references, since names differ between the sides.
func sliceFacts(s *discoveryv1.EndpointSlice) map[string]any {
	return map[string]any{
		"address type": s.AddressType,
		"ports":        s.Ports,
		"addresses": texts(s.Endpoints, func(e discoveryv1.Endpoint) string {
			return fmt.Sprintf("%v ready=%t", e.Addresses, ptr.Deref(e.Conditions.Ready, true))
		}),
	}
}

// ingressFacts omits the class: an admission plugin of the super cluster may
// set a default.
func ingressFacts(i *networkingv1.Ingress) map[string]any {
	return map[string]any{
		"default backend": i.Spec.DefaultBackend,
		"rules":           i.Spec.Rules,
		"TLS":             i.Spec.TLS,
		"load balancer":   i.Status.LoadBalancer.Ingress,
	}
}

// policyFacts omits namespace selectors, since namespaces have other labels in
// the super cluster.
func policyFacts(p *networkingv1.NetworkPolicy) map[string]any {
	facts := map[string]any{"pods": p.Spec.PodSelector, "types": p.Spec.PolicyTypes}
	for i, rule := range p.Spec.Ingress {
		facts[fmt.Sprintf("peers that rule %d lets in", i)] = len(rule.From)
		facts[fmt.Sprintf("ports that rule %d opens", i)] = rule.Ports
	}
	for i, rule := range p.Spec.Egress {
		facts[fmt.Sprintf("peers that rule %d lets out to", i)] = len(rule.To)
		facts[fmt.Sprintf("ports that rule %d lets out to", i)] = rule.Ports
	}
	return facts
}

// budgetFacts omits minAvailable and maxUnavailable: the tenant's control plane
// evaluates them.
func budgetFacts(b *policyv1.PodDisruptionBudget) map[string]any {
	return map[string]any{"pods": b.Spec.Selector, "unhealthy pods": b.Spec.UnhealthyPodEvictionPolicy}
}

// volumeClaimFacts omits the class, which has two notations.
func volumeClaimFacts(c *corev1.PersistentVolumeClaim) map[string]any {
	return map[string]any{
		"access modes": c.Spec.AccessModes,
		"requests":     c.Spec.Resources.Requests,
		"volume":       c.Spec.VolumeName,
		"phase":        c.Status.Phase,
		"capacity":     c.Status.Capacity,
	}
}

func claimFacts(c *resourcev1.ResourceClaim) map[string]any {
	return map[string]any{"spec": c.Spec, "allocated": c.Status.Allocation != nil}
}

func templateFacts(t *resourcev1.ResourceClaimTemplate) map[string]any {
	return map[string]any{"spec": t.Spec.Spec}
}
