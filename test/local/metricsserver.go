package local

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// MetricsServer fakes the resource metrics API of a super cluster.
type MetricsServer struct {
	server *httptest.Server

	mu       sync.Mutex
	measured []metricsv1beta1.PodMetrics
}

// StartMetricsServer starts a server without measurements.
func StartMetricsServer() *MetricsServer {
	m := &MetricsServer{}
	m.server = httptest.NewTLSServer(m)
	return m
}

// Stop stops the server.
func (m *MetricsServer) Stop() { m.server.Close() }

// Address returns the address of the server.
func (m *MetricsServer) Address() *net.TCPAddr { return m.server.Listener.Addr().(*net.TCPAddr) }

// Measure sets the usage of a pod.
func (m *MetricsServer) Measure(pod *corev1.Pod, cpu, memory string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.measured = append(m.measured, metricsv1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels},
		Timestamp:  metav1.Now(),
		Containers: []metricsv1beta1.ContainerMetrics{{Name: "main", Usage: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}}},
	})
}

// ServeHTTP serves discovery and lists of pods.
func (m *MetricsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const root = "/apis/metrics.k8s.io/v1beta1"
	path, ok := strings.CutPrefix(r.URL.Path, root)
	namespace, isPods := strings.CutSuffix(path, "/pods")
	var answer any
	switch {
	case ok && path == "":
		answer = &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "metrics.k8s.io/v1beta1",
			APIResources: []metav1.APIResource{{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}},
		}
	case ok && isPods:
		answer = m.list(strings.TrimPrefix(namespace, "/namespaces/"), r.URL.Query().Get("labelSelector"))
	default:
		http.NotFound(w, r)
		return
	}
	data, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // fails if the client has disconnected
}

func (m *MetricsServer) list(namespace, selector string) *metricsv1beta1.PodMetricsList {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := &metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{Kind: "PodMetricsList", APIVersion: "metrics.k8s.io/v1beta1"}}
	selected, err := apilabels.Parse(selector)
	if err != nil {
		return list
	}
	for _, pod := range m.measured {
		if (namespace == "" || namespace == pod.Namespace) && selected.Matches(apilabels.Set(pod.Labels)) {
			list.Items = append(list.Items, pod)
		}
	}
	return list
}
