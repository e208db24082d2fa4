// Package v1alpha1 is the control plane API of the Cluster API provider:
// NestedControlPlane, a tenant's control plane, and its template.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "controlplane.cluster.x-k8s.io", Version: "v1alpha1"}

// NestedControlPlaneKind is the kind of a NestedControlPlane.
const NestedControlPlaneKind = "NestedControlPlane"

// Finalizer keeps a NestedControlPlane until its VirtualCluster is gone.
const Finalizer = "nestedcontrolplane.controlplane.cluster.x-k8s.io"

// VirtualClusterUIDAnnotation is an annotation of a NestedControlPlane with the
// UID of its VirtualCluster. The controller writes it. As long as it exists, no
// other VirtualCluster takes the place of that one.
const VirtualClusterUIDAnnotation = "controlplane.cluster.x-k8s.io/virtual-cluster-uid"

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&NestedControlPlane{}, &NestedControlPlaneList{},
		&NestedControlPlaneTemplate{}, &NestedControlPlaneTemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
