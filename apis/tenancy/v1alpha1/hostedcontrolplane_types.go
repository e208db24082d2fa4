package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// HostedControlPlaneName is the name of the HostedControlPlane in the root
	// namespace of each VirtualCluster of provisioner Hosted.
	HostedControlPlaneName = "control-plane"
	// HostedControlPlaneSecret is the name of the Secret in the root namespace by
	// which clients reach the control plane. Written by vc-host.
	HostedControlPlaneSecret = "control-plane-clients"
	// HostedControlPlaneKeys is the name of the Secret in the root namespace with
	// the keys of the control plane. It is of no use to others than vc-host, which
	// writes it.
	HostedControlPlaneKeys = "control-plane-keys"
	// AdminKubeconfigKey is the key of the admin's kubeconfig in
	// HostedControlPlaneSecret.
	AdminKubeconfigKey = "admin.kubeconfig"
	// InternalKubeconfigKey is that of the same for clients inside the super
	// cluster.
	InternalKubeconfigKey = "internal.kubeconfig"
	// PlatformKubeconfigKey is that of the kubeconfig of the platform's own
	// clients.
	PlatformKubeconfigKey = "platform.kubeconfig"
	// KubeletClientCAKey is that of the authorities of the certificates by which
	// the apiserver shows who it is, in PEM.
	KubeletClientCAKey = "kubelet-client-ca.crt"
	// GatewayKeyPrefix begins the keys with what the gateway needs of the control
	// plane.
	GatewayKeyPrefix = "gateway."
)

// HostedControlPlaneFinalizer is on each HostedControlPlane until its data is
// deleted. Added by the manager, removed by vc-host.
const HostedControlPlaneFinalizer = "tenancy.x-k8s.io/hosted-control-plane"

// VirtualClusterReference identifies a VirtualCluster.
type VirtualClusterReference struct {
	// namespace is that of the VirtualCluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name is that of the VirtualCluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid is that of the VirtualCluster.
	// +required
	UID types.UID `json:"uid"`
}

// HostedControlPlaneSpec says whose the control plane is, and where its data
// is. All else is in the spec of the VirtualCluster.
type HostedControlPlaneSpec struct {
	// virtualCluster is the one whose control plane it is.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="virtualCluster cannot be changed"
	VirtualCluster VirtualClusterReference `json:"virtualCluster"`
	// store is the name of the ControlPlaneStore that is to have its data. The
	// manager changes it to move the data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Store string `json:"store"`
}

// HostedControlPlaneMove is a move of the data to another store during which the
// control plane does not run.
type HostedControlPlaneMove struct {
	// to is the name of the ControlPlaneStore that is to have the data.
	// +required
	To string `json:"to"`
	// startTime is when the control plane was stopped.
	// +required
	StartTime metav1.Time `json:"startTime"`
}

// HostedControlPlaneRemainder is data of the control plane in a store that does
// not have the current data.
type HostedControlPlaneRemainder struct {
	// store is the name of the ControlPlaneStore.
	// +required
	Store string `json:"store"`
	// since is when the data became unused. It is deleted a while later.
	// +required
	Since metav1.Time `json:"since"`
}

// HostedControlPlaneStatus is what vc-host reports.
type HostedControlPlaneStatus struct {
	// host is the name of the replica of vc-host that runs the control plane.
	// +optional
	Host string `json:"host,omitempty"`
	// hostAddress is where that replica accepts connections of other replicas.
	// +optional
	HostAddress string `json:"hostAddress,omitempty"`
	// endpoint is the URL of the apiserver.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// podEndpoint is the URL at which pods reach the apiserver.
	// +optional
	PodEndpoint string `json:"podEndpoint,omitempty"`
	// version is the Kubernetes version that runs, such as v1.36.3.
	// +optional
	Version string `json:"version,omitempty"`
	// wakeTime is when a control plane that sleeps wakes by itself.
	// +optional
	WakeTime *metav1.Time `json:"wakeTime,omitempty"`
	// extraSANs are the extra DNS names by which clients reach the control plane. No
	// other control plane has them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	ExtraSANs []string `json:"extraSANs,omitempty"`
	// store is the name of the ControlPlaneStore with the data. It differs from
	// that of the spec until the data was moved.
	// +optional
	Store string `json:"store,omitempty"`
	// move is the move of the data in progress.
	// +optional
	Move *HostedControlPlaneMove `json:"move,omitempty"`
	// attempt is the number of the last attempt to move the data. Stores reject
	// earlier ones.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// remainders are in stores that have had data of the control plane.
	// +optional
	// +listType=map
	// +listMapKey=store
	Remainders []HostedControlPlaneRemainder `json:"remainders,omitempty"`
	// conditions are Ready, Moved, WithinLimits, ControllersWorking, ExtraSANsValid
	// and Awake.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostedControlPlane is a control plane that vc-host runs, in the root namespace
// of its VirtualCluster. The manager creates it, and deletes it with the
// VirtualCluster. It is no interface for admins: they change the
// VirtualCluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hcp,categories=tenancy
// +kubebuilder:printcolumn:name="VirtualCluster",type=string,JSONPath=`.spec.virtualCluster.name`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.status.store`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'control-plane'",message="a root namespace has one HostedControlPlane, whose name is control-plane"
type HostedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is whose the control plane is, and where its data is.
	// +required
	Spec HostedControlPlaneSpec `json:"spec"`
	// status is what vc-host reports.
	// +optional
	Status HostedControlPlaneStatus `json:"status,omitempty"`
}

// DataStore returns the name of the ControlPlaneStore with the data. It is the one
// of the spec until vc-host has reported one.
func (h *HostedControlPlane) DataStore() string {
	if h.Status.Store != "" {
		return h.Status.Store
	}
	return h.Spec.Store
}

// HostedControlPlaneList is a list of HostedControlPlanes.
//
// +kubebuilder:object:root=true
type HostedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostedControlPlane `json:"items"`
}
