package resourcemetrics

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// The kinds of the API.
const (
	podKind  = "PodMetrics"
	nodeKind = "NodeMetrics"
)

// discovery says what the API has.
func discovery() *metav1.APIResourceList {
	verbs := metav1.Verbs{"get", "list"}
	return &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: metricsv1beta1.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{
			{Name: nodes, Kind: nodeKind, Verbs: verbs},
			{Name: pods, Kind: podKind, Verbs: verbs, Namespaced: true},
		},
	}
}

func typed(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: metricsv1beta1.SchemeGroupVersion.String()}
}

func podObject(m metricsv1beta1.PodMetrics) runtime.Object {
	m.TypeMeta = typed(podKind)
	return &m
}

func podList(items []metricsv1beta1.PodMetrics) runtime.Object {
	return &metricsv1beta1.PodMetricsList{TypeMeta: typed(podKind + "List"), Items: items}
}

func nodeObject(m metricsv1beta1.NodeMetrics) runtime.Object {
	m.TypeMeta = typed(nodeKind)
	return &m
}

func nodeList(items []metricsv1beta1.NodeMetrics) runtime.Object {
	return &metricsv1beta1.NodeMetricsList{TypeMeta: typed(nodeKind + "List"), Items: items}
}
