package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// NestedControlPlaneConfiguration is what a control plane and its template have
// in common. Each field is the one of the same name of the VirtualCluster.
type NestedControlPlaneConfiguration struct {
	// provisioner is the way in which the control plane runs. Default: by
	// vc-manager's --default-provisioner. --- External is left out: it would
	// read a kubeconfig of the namespace on behalf of a template's user.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != 'External'",message="provisioner External is not possible: create a VirtualCluster for a control plane that runs elsewhere"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provisioner is immutable"
	Provisioner tenancyv1alpha1.ProvisionerType `json:"provisioner,omitempty"`

	// pkiExpireDays is how long the tenant's certificates live. They are
	// renewed before they expire. Default: 365.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	PKIExpireDays int64 `json:"pkiExpireDays,omitempty"`

	// controlPlane configures a control plane of provisioner Hosted.
	// +optional
	ControlPlane *tenancyv1alpha1.ControlPlaneSpec `json:"controlPlane,omitempty"`
}

// NestedControlPlaneSpec is what a control plane should be.
//
// +kubebuilder:validation:XValidation:rule="has(self.provisioner) == has(oldSelf.provisioner)",message="provisioner cannot be added or removed after creation"
type NestedControlPlaneSpec struct {
	// version is the Kubernetes version of the control plane, such as v1.36.3.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+$`
	Version string `json:"version,omitempty"`

	// controlPlaneEndpoint is the address of the tenant's apiserver. The
	// controller writes it.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	NestedControlPlaneConfiguration `json:",inline"`
}

// APIEndpoint is the address of an apiserver.
//
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// host is a DNS name or an IP address.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`

	// port is the TCP port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// NestedControlPlaneStatus is what the controller observed of the
// VirtualCluster.
type NestedControlPlaneStatus struct {
	// initialization is read by Cluster API while it provisions the Cluster.
	// +optional
	Initialization NestedControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// versions has the Kubernetes version that the control plane runs.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// externalManagedControlPlane is true: the control plane has no nodes.
	// +optional
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`

	// conditions are Available, VirtualClusterUpToDate, KubeconfigAvailable,
	// Deleting and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NestedControlPlaneInitializationStatus is the part of the status that Cluster
// API reads while it provisions a Cluster.
//
// +kubebuilder:validation:MinProperties=1
type NestedControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true when the tenant's apiserver has served and
	// the kubeconfig Secret exists. It does not change afterwards.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// NestedControlPlane is the control plane of a Cluster that is a tenant of this
// cluster. It makes a VirtualCluster with the name of the Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nestedcontrolplanes,shortName=ncp,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels=cluster.x-k8s.io/v1beta2=v1alpha1
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NestedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the control plane should be.
	// +required
	Spec NestedControlPlaneSpec `json:"spec,omitempty,omitzero"`
	// status is what the controller observed.
	// +optional
	Status NestedControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (c *NestedControlPlane) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *NestedControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// NestedControlPlaneList is a list of NestedControlPlanes.
//
// +kubebuilder:object:root=true
type NestedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NestedControlPlane `json:"items"`
}
