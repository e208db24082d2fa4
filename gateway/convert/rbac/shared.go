package rbac

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	rbacv1 "k8s.io/api/rbac/v1"
)

// shared returns the shared objects of a resource; nil if it has none.
func (s *Store) shared(resource string) cache.SharedIndexInformer {
	switch resource {
	case clusterRoles:
		return s.sharedRoles
	case clusterRoleBindings:
		return s.sharedBindings
	}
	return nil
}

// Shared returns an object that the tenant shares with all, or false if it does
// not exist.
func (t Tenant) Shared(resource, name string) (map[string]any, bool) {
	in := t.Store.shared(resource)
	if in == nil {
		return nil, false
	}
	found, ok, err := in.GetIndexer().GetByKey(name)
	if err != nil || !ok {
		return nil, false
	}
	object, err := document(found)
	return object, err == nil
}

// AllShared returns the objects with labels that the tenant shares with all, and
// of which it has not changed a copy.
func (t Tenant) AllShared(resource string, selected labels.Selector) ([]map[string]any, error) {
	in := t.Store.shared(resource)
	if in == nil {
		return nil, nil
	}
	own := t.Store.clusterRoles
	if resource == clusterRoleBindings {
		own = t.Store.clusterRoleBindings
	}
	var objects []map[string]any
	for _, each := range in.GetIndexer().List() {
		meta := each.(Object)
		if _, changed := t.own(own, t.Key, meta.GetName()); changed || !selected.Matches(labels.Set(meta.GetLabels())) {
			continue
		}
		object, err := document(each)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// document returns an object as a document, with its type.
func document(object any) (map[string]any, error) {
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert a shared role: %w", err)
	}
	converted["apiVersion"] = rbacv1.SchemeGroupVersion.String()
	converted["kind"] = clusterRoleKind
	if _, ok := object.(*rbacv1.ClusterRoleBinding); ok {
		converted["kind"] = "ClusterRoleBinding"
	}
	return converted, nil
}

// Parse returns a document as an object of a resource.
func Parse(resource string, object map[string]any) (Object, error) {
	parsed := map[string]Object{
		"roles": &rbacv1.Role{}, "rolebindings": &rbacv1.RoleBinding{},
		clusterRoles: &rbacv1.ClusterRole{}, clusterRoleBindings: &rbacv1.ClusterRoleBinding{},
	}[resource]
	if parsed == nil {
		return nil, fmt.Errorf("%s are no roles and no bindings", resource)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, parsed); err != nil {
		return nil, fmt.Errorf("parse a role: %w", err)
	}
	return parsed, nil
}
