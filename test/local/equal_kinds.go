package local

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// downKind is a kind that flows down, as far as both sides can be compared.
type downKind struct {
	name string
	list client.ObjectList
	// own says that a side has an object for itself, by its own controllers; nil if there is no such.
	own func(client.Object) bool
	// onDemand: only what another object refers to has a copy, unless the VirtualCluster says otherwise.
	onDemand bool
	// copyName is the copy's name, if it is another than the object's.
	copyName func(string) string
	// references are what an object refers to in its namespace.
	references func(client.Object) []reference
	// selecting is the object with selectors of pods as the super cluster has them; nil for a kind without any.
	selecting func(translate.Tenant, client.Object) client.Object
	// facts are what has to be the same on both sides, of what is declared and of what is shown.
	facts func(client.Object) map[string]any
}

// downKinds are the kinds that are compared. A further kind is a row here.
func downKinds() []downKind {
	return []downKind{
		{name: "Namespace", list: &corev1.NamespaceList{}},
		{name: "ServiceAccount", list: &corev1.ServiceAccountList{}, references: accountReferences},
		{name: "ConfigMap", list: &corev1.ConfigMapList{}, onDemand: true, copyName: configMapName, facts: of(configMapFacts)},
		{name: "Secret", list: &corev1.SecretList{}, own: isTokens, onDemand: true, facts: of(secretFacts)},
		{name: "Service", list: &corev1.ServiceList{}, selecting: with(serviceSelector), facts: of(serviceFacts)},
		{name: "EndpointSlice", list: &discoveryv1.EndpointSliceList{}, own: isMadeSlice, facts: of(sliceFacts)},
		{name: "Ingress", list: &networkingv1.IngressList{}, references: ingressReferences, facts: of(ingressFacts)},
		{name: "NetworkPolicy", list: &networkingv1.NetworkPolicyList{}, own: isIsolation, selecting: with(policySelector), facts: of(policyFacts)},
		{name: "PodDisruptionBudget", list: &policyv1.PodDisruptionBudgetList{}, selecting: with(budgetSelector), facts: of(budgetFacts)},
		{name: "ResourceClaim", list: &resourcev1.ResourceClaimList{}, own: isMadeClaim, onDemand: true, facts: of(claimFacts)},
		{name: "ResourceClaimTemplate", list: &resourcev1.ResourceClaimTemplateList{}, onDemand: true, facts: of(templateFacts)},
		{name: "PersistentVolumeClaim", list: &corev1.PersistentVolumeClaimList{}, facts: of(volumeClaimFacts)},
		{name: "Pod", list: &corev1.PodList{}, references: podReferences, facts: of(podFacts)},
	}
}

// of makes facts of one type's.
func of[T client.Object](facts func(T) map[string]any) func(client.Object) map[string]any {
	return func(obj client.Object) map[string]any { return facts(obj.(T)) }
}

// superKey is where the copy of an object should be.
func (k downKind) superKey(who translate.Tenant, key client.ObjectKey) client.ObjectKey {
	if key.Namespace == "" {
		return client.ObjectKey{Name: who.SuperNamespace(key.Name)}
	}
	if k.copyName != nil {
		key.Name = k.copyName(key.Name)
	}
	return who.SuperKey(key)
}

// configMapName makes room for the super cluster's own root CA.
func configMapName(name string) string {
	if name == "kube-root-ca.crt" {
		return "tenant-" + name
	}
	return name
}

// isMadeSlice says whether a side's controllers made a slice, of a service or of Endpoints.
func isMadeSlice(obj client.Object) bool {
	by := obj.GetLabels()[discoveryv1.LabelManagedBy]
	return by == "endpointslice-controller.k8s.io" || by == "endpointslicemirroring-controller.k8s.io"
}

// isIsolation says whether a policy is the syncer's own, which keeps other tenants away.
func isIsolation(obj client.Object) bool {
	return obj.GetName() == names.IsolationPolicy || obj.GetName() == names.DefaultPolicy
}

// isMadeClaim says whether a claim was made of a template.
func isMadeClaim(obj client.Object) bool {
	return obj.GetAnnotations()["resource.kubernetes.io/pod-claim-name"] != ""
}
