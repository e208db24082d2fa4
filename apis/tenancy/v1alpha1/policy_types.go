package v1alpha1

// PodSecurityLevel is a level of the Pod Security Standards.
//
// +kubebuilder:validation:Enum=privileged;baseline;restricted
type PodSecurityLevel string

const (
	// PodSecurityPrivileged refuses nothing.
	PodSecurityPrivileged PodSecurityLevel = "privileged"
	// PodSecurityBaseline refuses what is known to lead from a pod to its node.
	PodSecurityBaseline PodSecurityLevel = "baseline"
	// PodSecurityRestricted asks for what hardens pods.
	PodSecurityRestricted PodSecurityLevel = "restricted"
)

// TenantPolicy is what a tenant's pods may ask of the super cluster. The empty policy is the safe one.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podSecurity) && self.podSecurity == 'privileged') || !((has(self.allowHostNamespaces) && self.allowHostNamespaces) || (has(self.allowHostPath) && self.allowHostPath) || has(self.hostPorts))",message="allowHostNamespaces, allowHostPath and hostPorts need podSecurity privileged, since the other levels refuse such pods"
type TenantPolicy struct {
	// podSecurity is the level of the Pod Security Standards that the super cluster enforces on the tenant's pods.
	// Default: baseline.
	// +optional
	PodSecurity PodSecurityLevel `json:"podSecurity,omitempty"`

	// allowHostNamespaces lets pods use their node's network, process and IPC namespaces.
	// +optional
	AllowHostNamespaces bool `json:"allowHostNamespaces,omitempty"`

	// allowHostPath lets pods mount directories of their node.
	// +optional
	AllowHostPath bool `json:"allowHostPath,omitempty"`

	// hostPorts are the ports of their node that containers may take. Default: none. A pod in the network of its node can take
	// any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	HostPorts []PortRange `json:"hostPorts,omitempty"`

	// allowNodeName lets pods name their node, past the super cluster's scheduler.
	// +optional
	AllowNodeName bool `json:"allowNodeName,omitempty"`

	// allowSystemPriority lets pods have the priority classes system-cluster-critical and system-node-critical. Without it,
	// they run without a priority.
	// +optional
	AllowSystemPriority bool `json:"allowSystemPriority,omitempty"`

	// allowSystemTolerations lets pods tolerate all taints, and those by which the super cluster keeps nodes for itself
	// (node-role.kubernetes.io and the like). Without it, they run without such tolerations.
	// +optional
	AllowSystemTolerations bool `json:"allowSystemTolerations,omitempty"`

	// allowTrafficFromTenants lets the pods of all tenants connect to this tenant's, where its own NetworkPolicies do not forbid it.
	// +optional
	AllowTrafficFromTenants bool `json:"allowTrafficFromTenants,omitempty"`
}

// PortRange is a range of ports.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not be above max"
type PortRange struct {
	// min is the first port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Min int32 `json:"min"`
	// max is the last port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Max int32 `json:"max"`
}
