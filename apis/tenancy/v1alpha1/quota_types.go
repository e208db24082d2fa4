package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Limit is a quantity that is not negative.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^[+]?([0-9]+|[0-9]+[.][0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$`
type Limit string

// PodLimits are the most that the pods of a priority class may have of each
// resource: pods, count/pods, and what pods request and limit.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['pods', 'count/pods']) || string(self[name]).matches('^[0-9]+[kMGTPE]?$'))",message="a limit of a number of objects must be a whole number, such as 10 or 5k"
// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['pods', 'count/pods', 'cpu', 'memory', 'ephemeral-storage', 'requests.cpu', 'requests.memory', 'requests.ephemeral-storage', 'limits.cpu', 'limits.memory', 'limits.ephemeral-storage'] || name.matches('^(requests[.])?hugepages-[0-9]+[KMG]i$') || name.matches('^requests[.][a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="a resource is not one of pods"
type PodLimits map[corev1.ResourceName]Limit

// QuotaSpec limits what a tenant has in the super cluster, over all its
// namespaces. It is enforced by a syncer that runs with
// --enable-quota-validation; the condition QuotaEnforced reports whether it is.
// Lowering a limit deletes nothing.
type QuotaSpec struct {
	// hard are the limits over all.
	// +optional
	Hard Limits `json:"hard,omitempty"`

	// priorityClasses limit, besides, the pods of single priority classes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	PriorityClasses []PriorityClassQuota `json:"priorityClasses,omitempty"`

	// rules are conditions that copies of the tenant's objects have to meet
	// when they are made or changed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Rules []QuotaRule `json:"rules,omitempty"`
}

// QuotaRule is a condition that copies have to meet.
type QuotaRule struct {
	// name is what messages call the rule.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// kinds are the kinds of the copies.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Kinds []QuotaKind `json:"kinds"`

	// expression is a CEL expression that is true for a copy that may be
	// written. It can read object, the copy as it would be written; oldObject,
	// the copy as it is, or null; tenant, with the fields name, namespace, key
	// and labels; used, what the tenant has beside this copy, and hard, what it
	// may have, both quantities by the names of resources.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`

	// message is what the tenant reads where the expression is false.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}

// PriorityClassQuota limits the pods of one priority class.
type PriorityClassQuota struct {
	// name is the priority class that the pods have in the super cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// hard are the limits.
	// +required
	Hard PodLimits `json:"hard"`
}

// QuotaStatus is what a tenant has of what it may have.
type QuotaStatus struct {
	// summary is used and hard of each limit, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Summary string `json:"summary,omitempty"`
	// hard are the limits that are enforced.
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`
	// used is what the tenant has of what is limited.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// priorityClasses are the same for the pods of single priority classes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	PriorityClasses []PriorityClassUsage `json:"priorityClasses,omitempty"`
}

// PriorityClassUsage is what the pods of one priority class have.
type PriorityClassUsage struct {
	// name is the priority class.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// hard are the limits that are enforced.
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`
	// used is what the pods have of what is limited.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
}
