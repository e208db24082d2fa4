// Package rbac authorizes the users of converted tenants by the roles and
// bindings of each tenant, as the RBAC authorizer of an apiserver does.
package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// bootstrap selects the roles and bindings that each cluster has.
const bootstrap = "kubernetes.io/bootstrapping=rbac-defaults"

// The resources and the kind of roles and bindings of a whole tenant.
const (
	clusterRoles        = "clusterroles"
	clusterRoleBindings = "clusterrolebindings"
	clusterRoleKind     = "ClusterRole"
)

// Store has the roles and bindings of all converted tenants, and those of the
// super cluster that each cluster has, which the tenants share. A tenant without
// any of its own takes no memory.
type Store struct {
	roles, roleBindings, clusterRoles, clusterRoleBindings cache.SharedIndexInformer

	sharedRoles, sharedBindings cache.SharedIndexInformer
}

// NewStore makes a store. It reads nothing before it is started.
func NewStore(super *rest.Config) (*Store, error) {
	shelf, err := clientOf(super, kinds.Shelf, shelfScheme())
	if err != nil {
		return nil, err
	}
	native, err := clientOf(super, rbacv1.SchemeGroupVersion, scheme.Scheme)
	if err != nil {
		return nil, err
	}
	s := &Store{
		roles: informer(shelf, "roles", &rbacv1.Role{}, ""), clusterRoles: informer(shelf, clusterRoles, &rbacv1.ClusterRole{}, ""),
		roleBindings:        informer(shelf, "rolebindings", &rbacv1.RoleBinding{}, ""),
		clusterRoleBindings: informer(shelf, clusterRoleBindings, &rbacv1.ClusterRoleBinding{}, ""),
		sharedRoles:         informer(native, clusterRoles, &rbacv1.ClusterRole{}, bootstrap),
		sharedBindings:      informer(native, clusterRoleBindings, &rbacv1.ClusterRoleBinding{}, bootstrap),
	}
	for _, each := range s.all() {
		if err := each.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("make an informer of roles: %w", err)
		}
	}
	return s, nil
}

func (s *Store) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{s.roles, s.roleBindings, s.clusterRoles, s.clusterRoleBindings, s.sharedRoles, s.sharedBindings}
}

// Start follows the objects until the context ends. It does not wait.
func (s *Store) Start(ctx context.Context) {
	for _, each := range s.all() {
		go each.RunWithContext(ctx)
	}
}

// HasSynced reports whether the store has all objects. Until then, it permits too
// little.
func (s *Store) HasSynced() bool {
	for _, each := range s.all() {
		if !each.HasSynced() {
			return false
		}
	}
	return true
}

// shelfScheme has the types of RBAC as those of the shelf.
func shelfScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(kinds.Shelf, &rbacv1.Role{}, &rbacv1.RoleList{}, &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{},
		&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{})
	metav1.AddToGroupVersion(s, kinds.Shelf)
	return s
}

func clientOf(super *rest.Config, version schema.GroupVersion, types *runtime.Scheme) (rest.Interface, error) {
	config := rest.CopyConfig(super)
	config.APIPath, config.GroupVersion, config.ContentType, config.AcceptContentTypes = "/apis", &version, runtime.ContentTypeJSON, ""
	config.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", version, err)
	}
	return client, nil
}

func informer(client rest.Interface, resource string, object runtime.Object, selector string) cache.SharedIndexInformer {
	source := cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.LabelSelector = selector
	})
	return cache.NewSharedIndexInformer(source, object, 0, cache.Indexers{scopeIndex: byScope, subjectIndex: bySubject})
}

// trim removes what neither the authorizer nor clients need.
func trim(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}
