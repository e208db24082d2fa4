package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionBound is the condition of a ProjectClaim: whether it has a
// VirtualCluster.
const ConditionBound = "Bound"

// Reasons of the condition Bound, beside ReasonAliasTaken.
const (
	// ReasonBound: the claim has a VirtualCluster.
	ReasonBound = "Bound"
	// ReasonLimitReached: the user has as many projects as the template permits.
	ReasonLimitReached = "LimitReached"
	// ReasonTemplateNotFound: the template does not exist.
	ReasonTemplateNotFound = "TemplateNotFound"
	// ReasonNotPermitted: the super cluster has rejected the VirtualCluster, such as
	// by a ResourceQuota.
	ReasonNotPermitted = "NotPermitted"
	// ReasonTemplateInvalid: the template makes no valid VirtualCluster.
	ReasonTemplateInvalid = "TemplateInvalid"
)

// ProjectClaimSpec says who has requested the project, and what.
type ProjectClaimSpec struct {
	// template names the ProjectTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Template string `json:"template"`
	// requester is the user of the super cluster who has requested the project and
	// may delete it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Requester string `json:"requester"`
}

// ProjectClaimStatus is what vc-manager reports.
type ProjectClaimStatus struct {
	// virtualCluster is the VirtualCluster of the project.
	// +optional
	VirtualCluster *VirtualClusterReference `json:"virtualCluster,omitempty"`
	// conditions are Bound. A claim for which it is False is deleted soon.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProjectClaim holds the name of a project that a user has requested, until the
// project is gone completely. The gateway creates it; vc-manager creates the
// VirtualCluster. To delete it deletes the project.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=tenancy
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.template`
// +kubebuilder:printcolumn:name="Requester",type=string,JSONPath=`.spec.requester`
// +kubebuilder:printcolumn:name="Bound",type=string,JSONPath=`.status.conditions[?(@.type=="Bound")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Bound")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="VirtualCluster",type=string,priority=1,JSONPath=`.status.virtualCluster.name`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="metadata.name must be a DNS label: at most 63 lower case letters, digits and '-'"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['system', 'projects'])",message="metadata.name is a name of the gateway: choose another one"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^[a-z0-9].*-[0-9a-f]{6}-.*[a-z0-9]$')",message="metadata.name has the form of a cluster key (a name, six hexadecimal digits and a name): choose another one"
type ProjectClaim struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata. The name is that of the project.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says who has requested the project, and what.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
	Spec ProjectClaimSpec `json:"spec"`
	// status is what vc-manager reports.
	// +optional
	Status ProjectClaimStatus `json:"status,omitempty"`
}

// ProjectClaimList is a list of ProjectClaims.
//
// +kubebuilder:object:root=true
type ProjectClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectClaim `json:"items"`
}
