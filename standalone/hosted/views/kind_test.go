package views

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// builtIn returns all resources of Kubernetes' own APIs that have informers.
func builtIn() []schema.GroupVersionResource {
	stock := informers.NewSharedInformerFactory(nil, 0)
	var resources []schema.GroupVersionResource
	for _, version := range legacyscheme.Scheme.PrioritizedVersionsAllGroups() {
		for name := range legacyscheme.Scheme.KnownTypes(version) {
			resource, _ := meta.UnsafeGuessKindToResource(version.WithKind(name))
			if _, err := stock.ForResource(resource); err == nil {
				resources = append(resources, resource)
			}
		}
	}
	return resources
}

// TestPrefixes compares the prefixes of records with those of upstream's
// storage, which a new minor of Kubernetes can change.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))
	config := kubeapiserver.NewStorageFactoryConfig()
	config.APIResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	storage, err := config.Complete(etcd).New()
	g.Expect(err).NotTo(HaveOccurred())
	resources := builtIn()
	g.Expect(len(resources)).To(BeNumerically(">", 60))
	for _, resource := range resources {
		g.Expect(prefixOf(resource.GroupResource())).To(Equal(storage.ResourcePrefix(resource.GroupResource())), resource.String())
	}
	g.Expect(prefixOf(apiextensionsv1.Resource("customresourcedefinitions"))).To(Equal("apiextensions.k8s.io/customresourcedefinitions"))
	g.Expect(prefixOf(schema.GroupResource{Group: "example.com", Resource: "pods"})).To(Equal("example.com/pods"))
}

// TestKinds: the Go type of each informer leads to its resource, and back.
func TestKinds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	for _, resource := range builtIn() {
		example, err := exampleOf(resource)
		g.Expect(err).NotTo(HaveOccurred())
		found, back := typedKind(example)
		g.Expect(found.err).NotTo(HaveOccurred())
		g.Expect(back).To(Equal(resource))
		kinds, _, err := legacyscheme.Scheme.ObjectKinds(example)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.name).To(Equal(kinds[0].Kind))
	}
	_, err := exampleOf(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pods"})
	g.Expect(err).To(MatchError(ContainSubstring("example.com/v1, Resource=pods")))
	unknown, _ := typedKind(&apiextensionsv1.CustomResourceDefinition{})
	g.Expect(unknown.err).To(MatchError(ContainSubstring("find the storage of *v1.CustomResourceDefinition")))
}

func stored(t *testing.T, object runtime.Object, version schema.GroupVersion) []byte {
	t.Helper()
	g := NewWithT(t)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	g.Expect(err).NotTo(HaveOccurred())
	serializer := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	value, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(serializer, version), internal)
	g.Expect(err).NotTo(HaveOccurred())
	return value
}

// TestDecode: objects are stored in any version and either format, and are
// decoded to the version of the informer, as a client would get them.
func TestDecode(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	object := metav1.ObjectMeta{Namespace: "team", Name: "web", Labels: map[string]string{"a": "b"}}
	event := &corev1.Event{ObjectMeta: object, Message: "hello", Source: corev1.EventSource{Component: "c"}}
	asCore, _ := typedKind(&corev1.Event{})
	asEvents, _ := typedKind(&eventsv1.Event{})
	g.Expect(asEvents.resource).To(Equal(asCore.resource))
	decoded, err := asEvents.decode(stored(t, event, corev1.SchemeGroupVersion))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decoded).To(Equal(&eventsv1.Event{ObjectMeta: object, Note: "hello", DeprecatedSource: corev1.EventSource{Component: "c"}}))

	asLease, _ := typedKind(&coordinationv1.Lease{})
	decoded, err = asLease.decode(stored(t, &coordinationv1.Lease{ObjectMeta: object}, coordinationv1beta1.SchemeGroupVersion))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decoded).To(Equal(&coordinationv1.Lease{ObjectMeta: object}))

	ingress := &networkingv1.Ingress{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}, ObjectMeta: object}
	value, err := json.Marshal(ingress)
	g.Expect(err).NotTo(HaveOccurred())
	asIngress, _ := typedKind(&networkingv1.Ingress{})
	g.Expect(asIngress.resource).To(Equal("ingress"))
	decoded, err = asIngress.decode(value)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decoded).To(Equal(&networkingv1.Ingress{ObjectMeta: object}))

	asPod, _ := typedKind(&corev1.Pod{})
	decoded, err = asPod.decode(stored(t, &corev1.Pod{ObjectMeta: object}, corev1.SchemeGroupVersion))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decoded).To(HaveField("Spec.RestartPolicy", corev1.RestartPolicyAlways), "fields have their defaults")
}

func TestDecodeMetadata(t *testing.T) {
	t.Parallel()
	object := metav1.ObjectMeta{
		Namespace: "team", Name: "web", UID: "1", Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Widget", Name: "o", UID: types.UID("2")}},
	}
	pod := stored(t, &corev1.Pod{ObjectMeta: object, Spec: corev1.PodSpec{NodeName: "n"}}, corev1.SchemeGroupVersion)
	for name, test := range map[string]struct {
		value []byte
		fails bool
	}{
		"protobuf":                {value: pod},
		"protobuf that is cut":    {value: pod[:len(pod)-3], fails: true},
		"no more than the magic":  {value: []byte(nesting.ProtobufPrefix)},
		"JSON":                    {value: []byte(`{"kind":"Widget","metadata":{"namespace":"team","name":"web","uid":"1","finalizers":["f"],"ownerReferences":[{"kind":"Widget","name":"o","uid":"2"}]},"spec":{"a":1}}`)},
		"JSON that is cut":        {value: []byte(`{"kind":"Widget","metadata":{"namespace":"team"`), fails: true},
		"JSON with other content": {value: []byte(`{"metadata":"none"}`), fails: true},
		"nothing":                 {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			decoded, err := decodeMetadata(test.value)
			g.Expect(err != nil).To(Equal(test.fails))
			if strings.HasPrefix(name, "protobuf") && !test.fails || name == "JSON" {
				g.Expect(decoded).To(BeComparableTo(&metav1.PartialObjectMetadata{ObjectMeta: object}))
			}
		})
	}
}
