package resourcemetrics

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// owned is a tenant's pod, as its copy tells of it.
type owned struct {
	namespace string
	node      string
	labels    map[string]string
}

// copies are the tenant's pods by the keys of their copies.
type copies map[types.NamespacedName]owned

// add adds a pod of the super cluster, if it is a copy made for the tenant in
// the copy of one of its namespaces.
func (c copies) add(of Tenant, namespaces map[string]string, pod metav1.Object, node string) {
	said := pod.GetAnnotations()
	namespace, ok := namespaces[pod.GetNamespace()]
	if !ok || said[names.Cluster] != of.Key || said[names.Namespace] != namespace {
		return
	}
	key := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetName()}
	c[key] = owned{namespace: namespace, node: node, labels: tenantLabels(pod)}
}

// tenantLabels are those labels of a copy that came from the tenant, under the
// tenant's keys. A label whose key is not known is left out.
func tenantLabels(pod metav1.Object) map[string]string {
	came := strings.Split(pod.GetAnnotations()[names.Labels], ",")
	labels := map[string]string{}
	for superKey, value := range pod.GetLabels() {
		if key, known := names.TenantLabel(superKey); known && slices.Contains(came, superKey) {
			labels[key] = value
		}
	}
	return labels
}

// podMetrics are the figures of the tenant's pods that are selected, under the
// tenant's names.
func podMetrics(c copies, s selection, measured []metricsv1beta1.PodMetrics) []metricsv1beta1.PodMetrics {
	shown := []metricsv1beta1.PodMetrics{}
	for _, m := range measured {
		pod, ok := c[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}]
		if !ok {
			continue
		}
		m.ObjectMeta = metav1.ObjectMeta{
			Namespace: pod.namespace, Name: m.Name, Labels: pod.labels, CreationTimestamp: m.CreationTimestamp,
		}
		if s.matches(m.ObjectMeta) {
			shown = append(shown, m)
		}
	}
	slices.SortFunc(shown, func(a, b metricsv1beta1.PodMetrics) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return shown
}

// nodeMetrics are what the tenant's pods use of each node that is selected. A
// node on which nothing of the tenant's was measured has none.
func nodeMetrics(c copies, s selection, measured []metricsv1beta1.PodMetrics) []metricsv1beta1.NodeMetrics {
	sums := map[string]*metricsv1beta1.NodeMetrics{}
	for i := range measured {
		m := &measured[i]
		node := c[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}].node
		if node == "" || !s.matches(metav1.ObjectMeta{Name: node}) {
			continue
		}
		sum := sums[node]
		if sum == nil {
			sum = &metricsv1beta1.NodeMetrics{
				ObjectMeta: metav1.ObjectMeta{Name: node, CreationTimestamp: m.CreationTimestamp},
				Timestamp:  m.Timestamp, Window: m.Window, Usage: corev1.ResourceList{},
			}
			sums[node] = sum
		}
		addUsage(sum, m)
	}
	shown := make([]metricsv1beta1.NodeMetrics, 0, len(sums))
	for _, sum := range sums {
		shown = append(shown, *sum)
	}
	slices.SortFunc(shown, func(a, b metricsv1beta1.NodeMetrics) int { return strings.Compare(a.Name, b.Name) })
	return shown
}

// addUsage adds what a pod uses. A sum is as old as the oldest of its parts.
func addUsage(sum *metricsv1beta1.NodeMetrics, pod *metricsv1beta1.PodMetrics) {
	if pod.Timestamp.Before(&sum.Timestamp) {
		sum.Timestamp, sum.Window = pod.Timestamp, pod.Window
	}
	for _, container := range pod.Containers {
		for resource, used := range container.Usage {
			total := sum.Usage[resource]
			total.Add(used)
			sum.Usage[resource] = total
		}
	}
}
