package provider

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterScoped are the built-in kinds without a namespace.
var clusterScoped = map[string]bool{"Namespace": true, "Node": true, "PersistentVolume": true}

// staticMapper maps the built-in kinds without asking any server: a mapper that discovers would hang with a tenant that
// hangs, and would keep the same table for each.
func staticMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for kind := range scheme.KnownTypes(corev1.SchemeGroupVersion) {
		scope := meta.RESTScopeNamespace
		if clusterScoped[kind] {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), scope)
	}
	return mapper
}
