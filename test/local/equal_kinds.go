package local

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// downKind is a kind that flows down, as far as both sides can be compared.
type downKind struct {
	name string
	list client.ObjectList
	// stays says that an object has no copy; nil if every one has.
	stays func(client.Object) bool
	// onDemand: only what another object refers to has a copy.
	onDemand bool
	// copyName is the copy's name, if it is another than the object's.
	copyName func(string) string
	// references are what an object refers to in its namespace.
	references func(client.Object) []reference
	// facts are what has to be the same on both sides, of what is declared and of what is shown.
	facts func(client.Object) map[string]any
}

// downKinds are the kinds that are compared. A further kind is a row here.
func downKinds() []downKind {
	return []downKind{
		{name: "Namespace", list: &corev1.NamespaceList{}},
		{name: "ServiceAccount", list: &corev1.ServiceAccountList{}},
		{name: "ConfigMap", list: &corev1.ConfigMapList{}, onDemand: true, copyName: configMapName, facts: of(configMapFacts)},
		{name: "Secret", list: &corev1.SecretList{}, onDemand: true, facts: of(secretFacts)},
		{name: "Service", list: &corev1.ServiceList{}, stays: isKubernetes, facts: of(serviceFacts)},
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

func configMapFacts(c *corev1.ConfigMap) map[string]any {
	return map[string]any{"data": c.Data, "binary data": c.BinaryData, "immutable": ptr.Deref(c.Immutable, false)}
}

func secretFacts(s *corev1.Secret) map[string]any {
	return map[string]any{"data": s.Data, "immutable": ptr.Deref(s.Immutable, false)}
}

// isKubernetes says whether a service is that of the tenant's own apiserver.
func isKubernetes(obj client.Object) bool {
	return obj.GetNamespace() == "default" && obj.GetName() == "kubernetes"
}

// serviceFacts leave out what each side allocates for itself.
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

// podFacts leave out times, since a change of nothing else is not worth a request.
func podFacts(p *corev1.Pod) map[string]any {
	return map[string]any{
		"images": texts(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) string {
			return c.Name + " " + c.Image
		}),
		"deadline":  ptr.Deref(p.Spec.ActiveDeadlineSeconds, 0),
		"node":      p.Spec.NodeName,
		"phase":     p.Status.Phase,
		"reason":    p.Status.Reason,
		"message":   p.Status.Message != "", // in each side's own terms
		"addresses": fmt.Sprint(p.Status.PodIPs),
		"containers": texts(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) string {
			return fmt.Sprintf("%s %s ready=%t restarts=%d running=%t terminated=%t",
				s.Name, s.Image, s.Ready, s.RestartCount, s.State.Running != nil, s.State.Terminated != nil)
		}),
		"conditions": texts(p.Status.Conditions, func(c corev1.PodCondition) string {
			return fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
		}),
	}
}

// texts are sorted texts, one of each.
func texts[T any](of []T, text func(T) string) []string {
	all := make([]string, len(of))
	for i := range of {
		all[i] = text(of[i])
	}
	slices.Sort(all)
	return all
}
