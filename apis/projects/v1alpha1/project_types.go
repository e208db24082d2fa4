// Package v1alpha1 is the API of projects, which the gateway serves: what of a
// VirtualCluster its members see, and how users request one. There are no CRDs
// of it, and nothing is stored.
//
// +kubebuilder:object:generate=true
// +kubebuilder:skip
// +groupName=tenancy.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the types of this package.
var GroupVersion = schema.GroupVersion{Group: "tenancy.x-k8s.io", Version: "v1alpha1"}

// The names of projects and of requests for them in paths.
const (
	Resource         = "projects"
	RequestsResource = "projectrequests"
)

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Project{}, &ProjectList{}, &ProjectRequest{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Project is a VirtualCluster of which the caller is a member. Its name is the
// alias of the VirtualCluster or, without one, the cluster key.
//
// +kubebuilder:object:root=true
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is the state of the project.
	// +optional
	Status ProjectStatus `json:"status,omitempty"`
}

// ProjectStatus is the state of a project.
type ProjectStatus struct {
	// phase is that of the VirtualCluster.
	// +optional
	Phase string `json:"phase,omitempty"`
	// clusterKey is the name of the project that never changes.
	// +optional
	ClusterKey string `json:"clusterKey,omitempty"`
	// version is the Kubernetes version of the project's control plane.
	// +optional
	Version string `json:"version,omitempty"`
}

// ProjectList is a list of projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}

// ProjectRequest requests a project with its name, of which the caller becomes a
// member. It can only be created; the response to it has the status.
//
// +kubebuilder:object:root=true
type ProjectRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata. Only the name is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is requested.
	// +optional
	Spec ProjectRequestSpec `json:"spec,omitempty"`
	// status is the project that was created.
	// +optional
	Status ProjectRequestStatus `json:"status,omitempty"`
}

// ProjectRequestSpec is what a user requests.
type ProjectRequestSpec struct {
	// template names the ProjectTemplate. Default: the only one from which the
	// caller may request projects.
	// +optional
	Template string `json:"template,omitempty"`
}

// ProjectRequestStatus is the project that was created.
type ProjectRequestStatus struct {
	// clusterKey is the name of the project that never changes.
	// +optional
	ClusterKey string `json:"clusterKey,omitempty"`
}
