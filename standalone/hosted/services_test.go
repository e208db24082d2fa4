package hosted

import (
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
)

// endpoints resolves every service to a pod.
type endpoints struct{ aggregator.ServiceResolver }

func (endpoints) ResolveEndpoint(namespace, name string, _ int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: "pod-of-" + name + "." + namespace}, nil
}

func TestServicesOfAggregatedAPIs(t *testing.T) {
	g := NewWithT(t)
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, spec := range map[string]corev1.ServiceSpec{
		"internal": {Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
		"external": {Type: corev1.ServiceTypeExternalName, ExternalName: "metrics.example"},
	} {
		g.Expect(services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: spec})).To(Succeed())
	}
	resolver := serviceResolver{ServiceResolver: endpoints{}, services: listers.NewServiceLister(services)}
	for name, want := range map[string]string{
		"internal": "https://pod-of-internal.team", // its ClusterIP leads nowhere
		"external": "https://metrics.example:443",
		"absent":   "https://pod-of-absent.team", // upstream's error says that it is not found
	} {
		resolved, err := resolver.ResolveEndpoint("team", name, 443)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(resolved.String()).To(Equal(want), name)
	}
}
