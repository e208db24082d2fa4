package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NestedControlPlaneTemplateSpec is the template.
type NestedControlPlaneTemplateSpec struct {
	// template is what NestedControlPlanes are created from.
	// +required
	Template NestedControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// NestedControlPlaneTemplateResource is what NestedControlPlanes are created
// from.
//
// +kubebuilder:validation:MinProperties=1
type NestedControlPlaneTemplateResource struct {
	// metadata is copied to each NestedControlPlane.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the spec of each NestedControlPlane; the version is the Cluster's.
	// --- It is a pointer since the empty spec is valid.
	//
	// +required
	Spec *NestedControlPlaneConfiguration `json:"spec,omitempty"`
}

// NestedControlPlaneTemplate is a template of NestedControlPlanes, for
// ClusterClasses.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nestedcontrolplanetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels=cluster.x-k8s.io/v1beta2=v1alpha1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NestedControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template.
	// +required
	Spec NestedControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// NestedControlPlaneTemplateList is a list of NestedControlPlaneTemplates.
//
// +kubebuilder:object:root=true
type NestedControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NestedControlPlaneTemplate `json:"items"`
}
