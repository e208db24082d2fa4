package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ProjectTemplateSpec says who may request projects, how many, and what they are.
type ProjectTemplateSpec struct {
	// namespace is where the VirtualClusters of the projects are created. It has to
	// exist. A ResourceQuota in it limits all of them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="namespace is immutable"
	Namespace string `json:"namespace"`
	// requesters are the users and groups of the super cluster who may request
	// projects from the template. The group system:authenticated has all users.
	// +required
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Requesters []Member `json:"requesters"`
	// projectsPerUser is how many projects of the template a user may have at a
	// time. Those that are being deleted count until they are gone.
	// Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ProjectsPerUser int32 `json:"projectsPerUser,omitempty"`
	// requesterClusterRole is the ClusterRole that the user has in a project that
	// the user has requested. Default: cluster-admin.
	// +optional
	// +kubebuilder:default=cluster-admin
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RequesterClusterRole string `json:"requesterClusterRole,omitempty"`
	// template is the VirtualCluster of a project. The alias is the name of the
	// project, and its user is one of its members.
	// +optional
	Template VirtualClusterTemplate `json:"template,omitempty"`
}

// VirtualClusterTemplate is what VirtualClusters are created from.
type VirtualClusterTemplate struct {
	// metadata has the labels and annotations of the VirtualClusters.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`
	// spec is the spec of a VirtualCluster, without an alias.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec,omitempty"`
}

// TemplateMetadata are labels and annotations.
type TemplateMetadata struct {
	// labels are those of the VirtualClusters.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are those of the VirtualClusters.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ProjectTemplate is what users may request as a project of their own, through
// the gateway.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=tenancy
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Per User",type=integer,JSONPath=`.spec.projectsPerUser`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, because it is the value of a label"
type ProjectTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says who may request projects, how many, and what they are.
	// +required
	Spec ProjectTemplateSpec `json:"spec"`
}

// ProjectTemplateList is a list of ProjectTemplates.
//
// +kubebuilder:object:root=true
type ProjectTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectTemplate `json:"items"`
}
