package resourcemetrics

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// source reads the super cluster itself: a cache would hold every pod there.
type source struct {
	super  client.Reader
	tenant Tenant
	// namespace is the requested namespace of the tenant; empty for all.
	namespace string
}

// read returns the tenant's pods, and what is measured of them and maybe of
// others. Only with withNodes do the pods have their nodes: that takes more
// than what is said about them.
func (s source) read(ctx context.Context, withNodes bool) (copies, []metricsv1beta1.PodMetrics, error) {
	namespaces, err := s.namespaces(ctx)
	if err != nil || len(namespaces) == 0 {
		return nil, nil, err
	}
	list := client.ObjectList(metadataOf("Pod"))
	if withNodes {
		list = &corev1.PodList{}
	}
	measured := &metricsv1beta1.PodMetricsList{}
	for _, l := range []client.ObjectList{list, measured} {
		if err := s.super.List(ctx, l, s.selectors()...); err != nil {
			return nil, nil, fmt.Errorf("list %T: %w", l, err)
		}
	}
	found := copies{}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		node := ""
		if pod, ok := obj.(*corev1.Pod); ok {
			node = pod.Spec.NodeName
		}
		found.add(s.tenant, namespaces, obj.(metav1.Object), node)
		return nil
	})
	return found, measured.Items, err
}

// namespaces returns the requested namespaces of the tenant, by the super
// cluster's names. A name alone proves nothing: they must have the tenant's
// UID.
func (s source) namespaces(ctx context.Context) (map[string]string, error) {
	list := metadataOf("Namespace")
	options := []client.ListOption{s.labels()}
	if s.namespace != "" {
		options = append(options, client.MatchingFields{nameField: names.SuperNamespace(s.tenant.Key, s.namespace)})
	}
	if err := s.super.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	found := map[string]string{}
	for i := range list.Items {
		ns := &list.Items[i]
		origin := ns.Annotations[names.Namespace]
		if ns.Annotations[names.VCUID] == string(s.tenant.UID) && ns.Name == names.SuperNamespace(s.tenant.Key, origin) {
			found[ns.Name] = origin
		}
	}
	return found, nil
}

// selectors lead to the tenant's pods.
func (s source) selectors() []client.ListOption {
	options := []client.ListOption{s.labels()}
	if s.namespace != "" {
		options = append(options, client.InNamespace(names.SuperNamespace(s.tenant.Key, s.namespace)))
	}
	return options
}

func (s source) labels() client.MatchingLabels {
	return client.MatchingLabels{names.VCName: s.tenant.Name, names.VCNamespace: s.tenant.Namespace}
}

// metadataOf is a list of what is said about objects of a kind.
func metadataOf(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}
