package command

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/access"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// mapping returns the kind that a user names as with kubectl: pod, po,
// deployments.apps.
func (t *tenant) mapping(ctx context.Context, kind string) (*meta.RESTMapping, error) {
	bounded, err := access.HTTPClient(ctx, t.route.Config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(t.route.Config, bounded)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(kinds)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), kinds, nil)
	resource := schema.ParseGroupResource(strings.ToLower(kind)).WithVersion("")
	gvk, err := mapper.KindFor(resource)
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// keys returns the keys of an object in the tenant and in the super cluster.
// Cluster-scoped objects other than namespaces have the same name in both.
func (t *tenant) keys(mapping *meta.RESTMapping, namespace, name string) (here, there client.ObjectKey) {
	cluster := t.vc.Status.ClusterNamespace
	switch {
	case mapping.GroupVersionKind.GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind():
		return client.ObjectKey{Name: name}, client.ObjectKey{Name: names.SuperNamespace(cluster, name)}
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		return client.ObjectKey{Name: name}, client.ObjectKey{Name: name}
	}
	here = client.ObjectKey{Namespace: namespace, Name: name}
	return here, client.ObjectKey{Namespace: names.SuperNamespace(cluster, namespace), Name: name}
}

// sides reads both sides of an object, and the events about it.
func (t *tenant) sides(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (sides, error) {
	found := sides{cluster: t.vc.Status.ClusterNamespace}
	here, there := t.keys(mapping, namespace, name)
	var err error
	if found.tenant, err = read(ctx, t.objects, mapping.GroupVersionKind, here); err != nil {
		return found, fmt.Errorf("get %s %s in the tenant: %w", mapping.GroupVersionKind.Kind, here, err)
	}
	if found.super, err = read(ctx, t.client, mapping.GroupVersionKind, there); err != nil {
		return found, fmt.Errorf("get %s %s in the super cluster: %w", mapping.GroupVersionKind.Kind, there, err)
	}
	if found.tenant == nil {
		return found, nil
	}
	events := &corev1.EventList{}
	about := fields.OneTermEqualSelector("involvedObject.uid", string(found.tenant.GetUID()))
	if err := t.objects.List(ctx, events, client.MatchingFieldsSelector{Selector: about}); err != nil {
		return found, fmt.Errorf("list the events of %s %s in the tenant: %w", mapping.GroupVersionKind.Kind, here, err)
	}
	found.events = fromSyncer(events.Items)
	return found, nil
}

// read reads an object; nil if it, or its kind, does not exist.
func read(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	err := c.Get(ctx, key, obj)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}
