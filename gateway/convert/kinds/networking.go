package kinds

const networkingGroup = "networking.k8s.io"

// networking returns the kinds of the groups networking.k8s.io and
// discovery.k8s.io.
func networking() []Kind {
	return []Kind{
		{
			Group: networkingGroup, Resource: "networkpolicies", Kind: "NetworkPolicy", Class: Placed,
			Rules: join(means(OwnPodSelector, "spec.podSelector"),
				means(NamespaceSelector, "spec.ingress[*].from[*].namespaceSelector", "spec.egress[*].to[*].namespaceSelector")),
			Cells:    map[string]Means{"Pod-Selector": OwnPodSelector},
			Reserves: true,
		},
		{Group: networkingGroup, Resource: "ingresses", Kind: "Ingress", Class: Placed, Subresources: withStatus},
		{
			Group: "discovery.k8s.io", Resource: "endpointslices", Kind: "EndpointSlice", Class: Placed,
			Rules:    means(NamespaceName, "endpoints[*].targetRef.namespace"),
			Reserves: true, // the one that leads to the shared DNS
		},
	}
}

// IsIngress reports whether it is the kind Ingress.
func (k Kind) IsIngress() bool { return k.Group == networkingGroup && k.Resource == "ingresses" }

// IngressClasses returns the kind of the classes of Ingresses.
func IngressClasses() Kind { return Find(networkingGroup, "ingressclasses") }
