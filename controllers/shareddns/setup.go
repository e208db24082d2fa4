package shareddns

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch;create;patch;delete

// SetupWithManager adds the reconciler to a manager whose cache has
// CachedObjects.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	b := builder.ControllerManagedBy(mgr).
		Named("shared-dns").
		For(&tenancyv1alpha1.VirtualCluster{}).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.concerned)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: timeout})
	if r.Service.Name == "" {
		return b.Complete(r)
	}
	networks, err := newNetworksCache(mgr)
	if err != nil {
		return err
	}
	r.networks = networks
	return b.Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(virtualcluster.OwnerOf)).
		WatchesRawSource(source.Kind[client.Object](networks, &corev1.Service{}, handler.EnqueueRequestsFromMapFunc(virtualcluster.OwnerOf))).
		Complete(r)
}

// newNetworksCache returns a cache with the copies of the DNS Services of networks,
// which no selector selects together with those of CachedObjects.
func newNetworksCache(mgr manager.Manager) (cache.Cache, error) {
	networks, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{names.NetworkService: names.DNSService}),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the cache of networks: %w", err)
	}
	return networks, mgr.Add(networks)
}

// CachedObjects is what of the super cluster the reconciler reads: the
// EndpointSlices of tenants that it writes, and, with a Service of vc-dns, its
// EndpointSlices and the copies of the Services kube-dns.
func CachedObjects(service types.NamespacedName) (map[client.Object]cache.ByObject, error) {
	ours, err := labels.NewRequirement(names.VCName, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	written, err := labels.NewRequirement(names.DNSPort, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	slices := cache.ByObject{Namespaces: map[string]cache.Config{
		cache.AllNamespaces: {LabelSelector: labels.NewSelector().Add(*written)},
	}}
	if service.Name == "" {
		return map[client.Object]cache.ByObject{&discoveryv1.EndpointSlice{}: slices}, nil
	}
	slices.Namespaces[service.Namespace] = cache.Config{
		LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}),
	}
	return map[client.Object]cache.ByObject{
		&discoveryv1.EndpointSlice{}: slices,
		&corev1.Service{}: {
			Label: labels.NewSelector().Add(*ours),
			Field: fields.OneTermEqualSelector(metav1.ObjectNameField, names.DNSService),
		},
	}, nil
}

// concerned returns the tenants that an EndpointSlice concerns: all, if it is
// one of vc-dns.
func (r *Reconciler) concerned(ctx context.Context, slice client.Object) []reconcile.Request {
	if slice.GetNamespace() != r.Service.Namespace {
		return virtualcluster.OwnerOf(ctx, slice)
	}
	all := &tenancyv1alpha1.VirtualClusterList{}
	if err := r.Client.List(ctx, all); err != nil {
		return nil // the cache fails for a kind that it does not have alone
	}
	requests := make([]reconcile.Request, len(all.Items))
	for i := range all.Items {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])}
	}
	return requests
}
