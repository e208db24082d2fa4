package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NestedClusterTemplateSpec is the template.
type NestedClusterTemplateSpec struct {
	// template is what NestedClusters are created from.
	// +required
	Template NestedClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// NestedClusterTemplateResource is what NestedClusters are created from.
//
// +kubebuilder:validation:MinProperties=1
type NestedClusterTemplateResource struct {
	// metadata is copied to each NestedCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the spec of each NestedCluster. --- It is a pointer since the
	// empty spec is valid.
	//
	// +required
	Spec *NestedClusterSpec `json:"spec,omitempty"`
}

// NestedClusterTemplate is a template of NestedClusters, for ClusterClasses.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nestedclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels=cluster.x-k8s.io/v1beta2=v1alpha1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NestedClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template.
	// +required
	Spec NestedClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// NestedClusterTemplateList is a list of NestedClusterTemplates.
//
// +kubebuilder:object:root=true
type NestedClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NestedClusterTemplate `json:"items"`
}
