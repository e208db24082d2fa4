// Package v1alpha1 is the infrastructure API of the Cluster API provider:
// NestedCluster, what a tenant gets of the super cluster, and its template.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1"}

// NestedClusterKind is the kind of a NestedCluster.
const NestedClusterKind = "NestedCluster"

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&NestedCluster{}, &NestedClusterList{},
		&NestedClusterTemplate{}, &NestedClusterTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
