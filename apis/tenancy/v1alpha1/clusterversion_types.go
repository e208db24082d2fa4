package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterVersionSpec is the manifests of the parts of a control plane.
type ClusterVersionSpec struct {
	// etcd is the tenant's key-value store.
	// +optional
	ETCD *StatefulSetSvcBundle `json:"etcd,omitempty"`
	// apiServer is the tenant's kube-apiserver.
	// +optional
	APIServer *StatefulSetSvcBundle `json:"apiServer,omitempty"`
	// controllerManager is the tenant's kube-controller-manager.
	// +optional
	ControllerManager *StatefulSetSvcBundle `json:"controllerManager,omitempty"`
}

// StatefulSetSvcBundle is one part of a control plane: a StatefulSet and the
// Service in front of it.
type StatefulSetSvcBundle struct {
	// metadata names the part.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// statefulset runs the part.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	StatefulSet *appsv1.StatefulSet `json:"statefulset,omitempty"`
	// service is the address of the part.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Service *corev1.Service `json:"service,omitempty"`
}

// ClusterVersionStatus is empty; the resource has it for what later versions report.
type ClusterVersionStatus struct{}

// ClusterVersion is a version of a control plane, as manifests. It has no
// effect yet: only the Native provisioner would read it, which is not
// implemented.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cv,categories=tenancy
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterVersion struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the manifests.
	// +optional
	Spec ClusterVersionSpec `json:"spec,omitempty"`
	// status is what stands.
	// +optional
	Status ClusterVersionStatus `json:"status,omitempty"`
}

// ClusterVersionList is a list of ClusterVersions.
//
// +kubebuilder:object:root=true
type ClusterVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterVersion `json:"items"`
}
