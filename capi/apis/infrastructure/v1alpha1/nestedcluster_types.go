package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// NestedClusterSpec is what a tenant gets of the super cluster. Each field is
// the one of the same name of the VirtualCluster. The empty spec is valid.
type NestedClusterSpec struct {
	// weight is the tenant's share of the syncer while several tenants have
	// work. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`

	// transparentMetaPrefixes are prefixes of label and annotation keys that
	// are copied from the super cluster's objects up to the tenant's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	TransparentMetaPrefixes []string `json:"transparentMetaPrefixes,omitempty"`

	// opaqueMetaPrefixes are prefixes of label and annotation keys of the
	// tenant's objects that stay in the tenant.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	OpaqueMetaPrefixes []string `json:"opaqueMetaPrefixes,omitempty"`

	// sync is what the syncer syncs for the tenant, where it differs from the
	// default.
	// +optional
	Sync *tenancyv1alpha1.SyncSpec `json:"sync,omitempty"`

	// policy is what the tenant's pods may ask of the super cluster. Default:
	// nothing that reaches beyond the tenant.
	// +optional
	Policy *tenancyv1alpha1.TenantPolicy `json:"policy,omitempty"`

	// quota limits what the tenant has in the super cluster. Default: no limits.
	// +optional
	Quota *tenancyv1alpha1.QuotaSpec `json:"quota,omitempty"`
}

// NestedClusterStatus is what the controller observed of the VirtualCluster.
type NestedClusterStatus struct {
	// initialization is read by Cluster API while it provisions the Cluster.
	// +optional
	Initialization NestedClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// clusterNamespace is the tenant's root namespace in the super cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterNamespace string `json:"clusterNamespace,omitempty"`

	// conditions are Ready, which mirrors Syncing of the VirtualCluster, and
	// Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NestedClusterInitializationStatus is the part of the status that Cluster API
// reads while it provisions a Cluster.
//
// +kubebuilder:validation:MinProperties=1
type NestedClusterInitializationStatus struct {
	// provisioned is true when the tenant has its root namespace in the super
	// cluster. It does not change afterwards.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// NestedCluster is the infrastructure of a Cluster that is a tenant of this
// cluster: what it gets of the super cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nestedclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels=cluster.x-k8s.io/v1beta2=v1alpha1
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.clusterNamespace`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NestedCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the tenant gets of the super cluster.
	// +optional
	Spec NestedClusterSpec `json:"spec,omitempty,omitzero"`
	// status is what the controller observed.
	// +optional
	Status NestedClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (c *NestedCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *NestedCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// NestedClusterList is a list of NestedClusters.
//
// +kubebuilder:object:root=true
type NestedClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NestedCluster `json:"items"`
}
