package controllers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// need says when a controller has something to do. Resources are named as in
// keyspace.RecordPrefix.
type need struct {
	// resources are those that the controller works on: it is needed while there
	// are objects of any of them.
	resources []string
	// pending reports whether it is needed for another reason; nil for none.
	pending func(ctx context.Context, s *state) (bool, error)
	// triggers are the resources whose changes can make pending true.
	triggers []string
	// always means that every change can make pending true, except one of events.
	always bool
}

// eventsResource is that of Events. They are many, and no controller works on them.
const eventsResource = "events"

// concerns reports whether a change of a resource can make the need arise.
func (n *need) concerns(resource string) bool {
	return n.always && resource != eventsResource || slices.Contains(n.resources, resource) || slices.Contains(n.triggers, resource)
}

// arises reports whether the controller is needed.
func (n *need) arises(ctx context.Context, s *state) (bool, error) {
	for _, resource := range n.resources {
		if found, err := s.feed.Count(ctx, s.tenant, resource); err != nil || found > 0 {
			return true, err
		}
	}
	if n.pending == nil {
		return false, nil
	}
	return n.pending(ctx, s)
}

func objectsOf(resources ...string) *need { return &need{resources: resources} }

// besides is the need of a controller that works on all objects of a resource
// but one, which every cluster has.
func besides(resource, name string) *need {
	return &need{triggers: []string{resource}, pending: func(ctx context.Context, s *state) (bool, error) {
		found, err := s.feed.Count(ctx, s.tenant, resource)
		if err != nil || found != 1 {
			return found > 0, err
		}
		value, err := s.feed.Get(ctx, s.tenant, resource, name)
		return value == nil, err
	}}
}

func pendingBy(pending func(context.Context, *state) (bool, error), triggers ...string) *need {
	return &need{pending: pending, triggers: triggers}
}

// kubernetesService is the Service of the apiserver itself.
const kubernetesService = corev1.NamespaceDefault + "/kubernetes"

// needs returns the need of each controller of a tenant. A controller that is
// not here is always needed.
func needs() map[string]*need {
	return map[string]*need{
		"serviceaccount-token-controller":          objectsOf("secrets"),
		"serviceaccount-controller":                pendingBy(lacksServiceAccount, "namespaces", "serviceaccounts"),
		"root-ca-certificate-publisher-controller": pendingBy(lacksRootCA, "namespaces", "configmaps"),
		"namespace-controller":                     pendingBy(hasDeletedNamespace, "namespaces"),
		"garbage-collector-controller":             {pending: hasDependents, always: true},
		"resourcequota-controller":                 objectsOf("resourcequotas"),
		"clusterrole-aggregation-controller":       pendingBy(hasStaleAggregation, "clusterroles"),

		"validatingadmissionpolicy-status-controller": pendingBy(hasUncheckedPolicy, "validatingadmissionpolicies"),

		"certificatesigningrequest-signing-controller": objectsOf("certificatesigningrequests"),
		"certificatesigningrequest-cleaner-controller": objectsOf("certificatesigningrequests"),

		"deployment-controller":                objectsOf("deployments"),
		"daemonset-controller":                 objectsOf("daemonsets"),
		"replicaset-controller":                objectsOf("replicasets"),
		"replicationcontroller-controller":     objectsOf("controllers"),
		"statefulset-controller":               objectsOf("statefulsets"),
		"job-controller":                       {resources: []string{"jobs"}, pending: hasTrackedPods, triggers: []string{"pods"}},
		"cronjob-controller":                   objectsOf("cronjobs"),
		"ttl-after-finished-controller":        objectsOf("jobs"),
		"horizontal-pod-autoscaler-controller": objectsOf("horizontalpodautoscalers"),
		"disruption-controller": {
			resources: []string{"poddisruptionbudgets"}, pending: hasDisruptedPods, triggers: []string{"pods"},
		},

		"endpoints-controller":               besides("services/specs", kubernetesService),
		"endpointslice-controller":           besides("services/specs", kubernetesService),
		"endpointslice-mirroring-controller": besides("services/endpoints", kubernetesService),
		"service-cidr-controller":            pendingBy(hasPendingServiceCIDR, "servicecidrs"),

		"persistentvolume-binder-controller":          objectsOf("persistentvolumes", "persistentvolumeclaims"),
		"persistentvolumeclaim-protection-controller": objectsOf("persistentvolumeclaims"),
		"persistentvolume-protection-controller":      objectsOf("persistentvolumes"),
		"volumeattributesclass-protection-controller": objectsOf("volumeattributesclasses"),
		"ephemeral-volume-controller":                 objectsOf("pods"),
	}
}
