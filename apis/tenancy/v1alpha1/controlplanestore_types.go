package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionStoreHealthy reports whether a ControlPlaneStore can be read and
// written. Written by vc-host.
const ConditionStoreHealthy = "Healthy"

// Reasons of the conditions of a ControlPlaneStore.
const (
	// ReasonHealthy: the store can be read and written.
	ReasonHealthy = "Healthy"
	// ReasonStoreUnreachable: no member of the store responds.
	ReasonStoreUnreachable = "Unreachable"
	// ReasonStoreFull: the store accepts no writes until something is deleted.
	ReasonStoreFull = "Full"
	// ReasonCredentialsInvalid: the Secret with the credentials does not exist,
	// or cannot be used.
	ReasonCredentialsInvalid = "CredentialsInvalid"
)

// ControlPlaneStoreSpec says where an etcd is and how much it takes.
type ControlPlaneStoreSpec struct {
	// endpoints are the client URLs of all members of the etcd.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^https://[^/@?#]+$`
	Endpoints []string `json:"endpoints"`
	// credentialsSecret is the name of a Secret in the namespace of vc-host, with
	// the authority of the members in ca.crt, and the certificate and key of a
	// client in tls.crt and tls.key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecret string `json:"credentialsSecret"`
	// capacity is how much the store takes.
	// +optional
	Capacity StoreCapacity `json:"capacity,omitempty"`
	// unschedulable: no further control planes are placed in the store. Those in
	// it stay.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`
	// deleteOrphans are names in status.orphans whose data is deleted. Data of
	// which there is a HostedControlPlane is kept.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	DeleteOrphans []string `json:"deleteOrphans,omitempty"`
}

// StoreOrphans is data in a store that belongs to no HostedControlPlane.
type StoreOrphans struct {
	// count is the number of control planes, or parts of them, to which it has
	// belonged.
	// +optional
	Count int32 `json:"count,omitempty"`
	// bytes is its size.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// names are the first of them. To delete their data, write the names to
	// spec.deleteOrphans.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
	// checkTime is when the data was found.
	// +optional
	CheckTime metav1.Time `json:"checkTime,omitempty"`
}

// StoreCapacity is how much a store takes.
type StoreCapacity struct {
	// storage is the quota of the etcd, its --quota-backend-bytes. Default: 8Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="storage must be 64Mi to 1Ti"
	Storage *resource.Quantity `json:"storage,omitempty"`
	// controlPlanes is how many control planes are placed in the store at most.
	// Default: 5000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	ControlPlanes *int32 `json:"controlPlanes,omitempty"`
}

// ControlPlaneStoreStatus is what vc-host reports.
type ControlPlaneStoreStatus struct {
	// controlPlanes is how many HostedControlPlanes name the store.
	// +optional
	ControlPlanes int32 `json:"controlPlanes,omitempty"`
	// bytes is the size of the data in use.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// orphans is data that belongs to no HostedControlPlane; there is none if all
	// data belongs to one. It is looked for every hour, and after a change of the
	// spec.
	// +optional
	Orphans *StoreOrphans `json:"orphans,omitempty"`
	// conditions are Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ControlPlaneStore is an etcd with the data of hosted control planes. A
// client of it can read the Secrets of all their tenants.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cps,categories=tenancy
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Control Planes",type=integer,JSONPath=`.status.controlPlanes`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`
// +kubebuilder:printcolumn:name="Orphans",type=integer,JSONPath=`.status.orphans.count`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ControlPlaneStore struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is where the etcd is and how much it takes.
	// +required
	Spec ControlPlaneStoreSpec `json:"spec"`
	// status is what vc-host reports.
	// +optional
	Status ControlPlaneStoreStatus `json:"status,omitempty"`
}

// ControlPlaneStoreList is a list of ControlPlaneStores.
//
// +kubebuilder:object:root=true
type ControlPlaneStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlaneStore `json:"items"`
}
