package quota

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/plugintest"
)

// still is a cache without events: it has VirtualClusters, and no objects of
// tenants.
type still struct {
	informertest.FakeInformers

	known []*tenancyv1alpha1.VirtualCluster
}

func (s *still) GetInformer(ctx context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, metadata := obj.(*metav1.PartialObjectMetadata); metadata {
		return s.GetInformerForKind(ctx, obj.GetObjectKind().GroupVersionKind())
	}
	informer, err := s.FakeInformers.GetInformer(ctx, obj)
	if _, tenants := obj.(*tenancyv1alpha1.VirtualCluster); tenants && err == nil {
		return knowing{informer, s.known}, nil
	}
	return informer, err
}

// knowing is an informer with objects.
type knowing struct {
	cache.Informer

	known []*tenancyv1alpha1.VirtualCluster
}

func (k knowing) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	for _, vc := range k.known {
		h.OnAdd(vc, true)
	}
	return k.Informer.AddEventHandler(h)
}

// TestContract checks the contract of validators, and the limit while the cache
// does not show new objects (QV-8, QV-16).
func TestContract(t *testing.T) {
	const slots = 3
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, tenancyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	first, second := virtualCluster(hard("pods", "3")), virtualCluster(hard("pods", "3"))
	blue := plugins.Tenant{Key: "blue", Name: "blue", Namespace: "team", UID: "blue-uid"}
	second.Name, second.UID, second.Status.ClusterNamespace = blue.Name, blue.UID, blue.Key
	r := creation("web")
	plugintest.Run(t, plugintest.Case{
		Registration: plugins.Registration{ID: ID, InitFn: func(env plugins.Environment) (plugins.Validator, error) {
			return New().Registration().InitFn(env)
		}},
		Cache: &still{
			FakeInformers: informertest.FakeInformers{Scheme: scheme}, known: []*tenancyv1alpha1.VirtualCluster{first, second},
		},
		Client:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(first, second).WithStatusSubresource(first).Build(),
		Tenants: [2]plugins.Tenant{red, blue},
		Object:  r.Object,
		Kind:    corev1.SchemeGroupVersion.WithKind("Pod"),
		Limit:   slots,
	})
}
