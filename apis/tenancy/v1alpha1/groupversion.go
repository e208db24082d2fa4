// Package v1alpha1 is the API of the platform admin: VirtualCluster, a tenant's
// control plane; HostedControlPlane and ControlPlaneStore, by which vc-manager
// and vc-host run those of provisioner Hosted; ProjectTemplate and ProjectClaim,
// by which users request one; and ClusterVersion, the manifests from which the
// Native provisioner builds one. Native is not implemented yet, and nothing
// reads ClusterVersions.
//
// +kubebuilder:object:generate=true
// +groupName=tenancy.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "tenancy.x-k8s.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&VirtualCluster{}, &VirtualClusterList{},
		&ClusterVersion{}, &ClusterVersionList{},
		&HostedControlPlane{}, &HostedControlPlaneList{},
		&ControlPlaneStore{}, &ControlPlaneStoreList{},
		&ProjectTemplate{}, &ProjectTemplateList{},
		&ProjectClaim{}, &ProjectClaimList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
