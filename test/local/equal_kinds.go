package local

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// downKind describes how to compare one kind that is synced down.
type downKind struct {
	name string
	list client.ObjectList
	// own reports whether an object belongs to the controllers of its own side;
	// nil if no such objects exist.
	own func(client.Object) bool
	// onDemand marks a kind of which only referenced objects have copies,
	// unless the VirtualCluster says otherwise.
	onDemand bool
	// copyName returns the name of the copy; nil if it is the name of the
	// object.
	copyName func(string) string
	// references returns the references of an object within its namespace.
	references func(client.Object) []reference
	// selecting returns the object with the pod selectors of its copy; nil for
	// kinds without selectors.
	selecting func(translate.Tenant, client.Object) client.Object
	// facts returns the part of spec and status that must be the same on both
	// sides.
	facts func(client.Object) map[string]any
}

// downKinds returns the kinds that are compared: all that tenants declare, but
// Endpoints, since the controllers of both sides create these as well. Their
// EndpointSlices are compared.
func downKinds() []downKind {
	flows, specific := resources.All(resources.Agent{}, nil), specifics()
	compared := make([]downKind, 0, len(flows))
	for _, flow := range flows {
		k := flow.Erase()
		if k.Down == nil || k.Name == "Endpoints" {
			continue
		}
		row := specific[k.Name]
		row.name, row.list, row.onDemand = k.Name, k.List, k.Down.OnDemand
		compared = append(compared, row)
	}
	return compared
}

// specifics returns what is specific to some kinds. Of a kind without a row, the
// existence, names, labels and annotations of copies are compared.
func specifics() map[string]downKind {
	return map[string]downKind{
		"ServiceAccount":        {references: accountReferences},
		"ConfigMap":             {copyName: configMapName, facts: of(configMapFacts)},
		"Secret":                {own: isTokens, facts: of(secretFacts)},
		"Service":               {selecting: with(serviceSelector), facts: of(serviceFacts)},
		"EndpointSlice":         {own: isMadeSlice, facts: of(sliceFacts)},
		"Ingress":               {references: ingressReferences, facts: of(ingressFacts)},
		"NetworkPolicy":         {own: isIsolation, selecting: with(policySelector), facts: of(policyFacts)},
		"PodDisruptionBudget":   {selecting: with(budgetSelector), facts: of(budgetFacts)},
		"ResourceClaim":         {own: isMadeClaim, facts: of(claimFacts)},
		"ResourceClaimTemplate": {facts: of(templateFacts)},
		"PersistentVolumeClaim": {facts: of(volumeClaimFacts)},
		"Pod":                   {references: podReferences, facts: of(podFacts)},
	}
}

// of adapts the facts of one type to any object.
func of[T client.Object](facts func(T) map[string]any) func(client.Object) map[string]any {
	return func(obj client.Object) map[string]any { return facts(obj.(T)) }
}

// superKey returns the namespace and name of an object's copy.
func (k downKind) superKey(who translate.Tenant, key client.ObjectKey) client.ObjectKey {
	if key.Namespace == "" {
		return client.ObjectKey{Name: who.SuperNamespace(key.Name)}
	}
	if k.copyName != nil {
		key.Name = k.copyName(key.Name)
	}
	return who.SuperKey(key)
}

// configMapName renames the tenant's root CA, since the super cluster publishes
// its own under that name.
func configMapName(name string) string {
	if name == "kube-root-ca.crt" {
		return "tenant-" + name
	}
	return name
}

// isMadeSlice reports whether a slice was created by a controller of its side,
// for a Service or for Endpoints.
func isMadeSlice(obj client.Object) bool {
	by := obj.GetLabels()[discoveryv1.LabelManagedBy]
	return by == "endpointslice-controller.k8s.io" || by == "endpointslicemirroring-controller.k8s.io"
}

// isIsolation reports whether a policy is the one with which the syncer
// isolates tenants.
func isIsolation(obj client.Object) bool {
	return obj.GetName() == names.IsolationPolicy || obj.GetName() == names.DefaultPolicy
}

// isMadeClaim reports whether a claim was created from a template.
func isMadeClaim(obj client.Object) bool {
	return obj.GetAnnotations()["resource.kubernetes.io/pod-claim-name"] != ""
}
