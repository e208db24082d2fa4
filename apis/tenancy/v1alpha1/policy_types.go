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

// VolumeType is the source of a volume that mounts what the nodes or the super
// cluster's network reach, by its field in a pod.
//
// +kubebuilder:validation:Enum=nfs;iscsi;fc;flexVolume;gcePersistentDisk;awsElasticBlockStore;azureDisk;azureFile;cinder;cephfs;rbd;glusterfs;vsphereVolume;portworxVolume;quobyte;flocker;photonPersistentDisk;scaleIO;storageos
type VolumeType string

// ReclaimPolicy is what becomes of a volume whose claim is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type ReclaimPolicy string

// DaemonSetPolicy is what becomes of a tenant's DaemonSets.
//
// +kubebuilder:validation:Enum=Refuse;Run
type DaemonSetPolicy string

const (
	// DaemonSetsRefuse forbids their creation.
	DaemonSetsRefuse DaemonSetPolicy = "Refuse"
	// DaemonSetsRun runs them on the nodes that the tenant sees.
	DaemonSetsRun DaemonSetPolicy = "Run"
)

// CIDR is a network in CIDR notation, without host bits.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).masked() == cidr(self)",message="must be a network in CIDR notation with no host bits set, such as 192.0.2.0/24"
type CIDR string

// TenantPolicy is what a tenant's pods may ask of the super cluster. The empty
// policy is the safe one.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podSecurity) && self.podSecurity == 'privileged') || !((has(self.allowHostNamespaces) && self.allowHostNamespaces) || (has(self.allowHostPath) && self.allowHostPath) || has(self.hostPorts))",message="allowHostNamespaces, allowHostPath and hostPorts need podSecurity privileged, since the other levels refuse such pods"
type TenantPolicy struct {
	// podSecurity is the level of the Pod Security Standards that the super
	// cluster enforces on the tenant's pods. Default: baseline.
	// +optional
	PodSecurity PodSecurityLevel `json:"podSecurity,omitempty"`

	// allowHostNamespaces lets pods use their node's network, process and IPC
	// namespaces.
	// +optional
	AllowHostNamespaces bool `json:"allowHostNamespaces,omitempty"`

	// allowHostPath lets pods mount directories of their node.
	// +optional
	AllowHostPath bool `json:"allowHostPath,omitempty"`

	// hostPorts are the ports of their node that containers may take. Default:
	// none. A pod in the network of its node can take any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	HostPorts []PortRange `json:"hostPorts,omitempty"`

	// allowNodeName lets pods name their node, past the super cluster's scheduler.
	// +optional
	AllowNodeName bool `json:"allowNodeName,omitempty"`

	// allowSystemPriority lets pods have the priority classes
	// system-cluster-critical and system-node-critical. Without it, they run
	// without a priority.
	// +optional
	AllowSystemPriority bool `json:"allowSystemPriority,omitempty"`

	// allowSystemTolerations lets pods tolerate all taints, and those by which
	// the super cluster keeps nodes for itself (node-role.kubernetes.io and the
	// like). Without it, they run without such tolerations.
	// +optional
	AllowSystemTolerations bool `json:"allowSystemTolerations,omitempty"`

	// daemonSets is what becomes of the DaemonSets of a hosted tenant. Refuse, the
	// default, forbids their creation: a tenant has no nodes of its own. Run has
	// a pod of each on every node that the tenant sees, which spec.sync.nodes
	// selects; pods may then tolerate that a node is cordoned. A change restarts
	// the control plane. Other provisioners decide for themselves.
	// +optional
	DaemonSets DaemonSetPolicy `json:"daemonSets,omitempty"`

	// allowTolerations are further taints that pods may tolerate: a key, a key
	// with a value such as dedicated=red, or the beginning of keys with an
	// asterisk such as example.com/*. Taints of the super cluster's own are
	// covered only by their exact key. Default: pods tolerate what tells the
	// condition of a node, and run without other tolerations.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=384
	// +kubebuilder:validation:items:Pattern=`^([*]|[A-Za-z0-9][-A-Za-z0-9_./]*([*]|=[-A-Za-z0-9_.]*)?)$`
	AllowTolerations []string `json:"allowTolerations,omitempty"`

	// allowSchedulers are the schedulers that pods may name beside
	// default-scheduler. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AllowSchedulers []string `json:"allowSchedulers,omitempty"`

	// allowVolumeTypes are further types of volumes that pods may mount inline.
	// Default: emptyDir, configMap, secret, projected, downwardAPI,
	// persistentVolumeClaim, ephemeral, image, and csi with a driver that the
	// tenant is offered.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AllowVolumeTypes []VolumeType `json:"allowVolumeTypes,omitempty"`

	// allowProbeHosts lets probes and lifecycle hooks name a host, to which the
	// kubelet connects from its node. Default: they reach the pod itself.
	// +optional
	AllowProbeHosts bool `json:"allowProbeHosts,omitempty"`

	// allowNodeProfiles lets pods choose seccomp and AppArmor profiles that are
	// installed on the nodes (type Localhost), and credential specs of group
	// managed service accounts. The level privileged allows them too.
	// +optional
	AllowNodeProfiles bool `json:"allowNodeProfiles,omitempty"`

	// allowExternalNames syncs down Services of type ExternalName and
	// EndpointSlices of names, which an Ingress controller or a gateway of the
	// super cluster resolves in its own network. Default: they stay in the
	// tenant, whose DNS serves them.
	// +optional
	AllowExternalNames bool `json:"allowExternalNames,omitempty"`

	// allowConversionWebhooks lets the CRDs of a converted tenant convert by webhooks.
	// While a webhook fails, controllers of the super cluster cannot list its custom
	// resources. Default: such CRDs are rejected. A CRD that has a webhook keeps it.
	// Tenants of other provisioners, whose CRDs are in their control planes, do not
	// need it.
	// +optional
	AllowConversionWebhooks bool `json:"allowConversionWebhooks,omitempty"`

	// ingressHosts are the only hosts that Ingresses and routes of the Gateway API
	// may serve: a name, all names below one such as *.red.example.com, or * for
	// all hosts and for rules without a host. Default: every name that no Ingress
	// or route of the platform or of another tenant serves.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^([*]|([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	IngressHosts []string `json:"ingressHosts,omitempty"`

	// allowReclaimPolicies are the reclaim policies that a tenant may give to
	// its volumes. Default: none, so that volumes keep what their class says.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	AllowReclaimPolicies []ReclaimPolicy `json:"allowReclaimPolicies,omitempty"`

	// allowTrafficFromTenants lets the pods of all tenants connect to this
	// tenant's, where its own NetworkPolicies do not forbid it.
	// +optional
	AllowTrafficFromTenants bool `json:"allowTrafficFromTenants,omitempty"`

	// endpointCIDRs are the networks that Endpoints and EndpointSlices which
	// the tenant writes may lead to, beside the tenant's own pods and its own
	// apiserver. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	EndpointCIDRs []CIDR `json:"endpointCIDRs,omitempty"`

	// loadBalancerCIDRs are the networks of the addresses that Services may ask
	// of load balancers by spec.loadBalancerIP. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	LoadBalancerCIDRs []CIDR `json:"loadBalancerCIDRs,omitempty"`

	// loadBalancerClasses are the classes of load balancers that Services may
	// name. Default: none, so that the super cluster's default serves them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitempty"`

	// maxGracePeriodSeconds is the longest grace period of a pod. A longer one
	// is shortened to this. Default: 3600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	MaxGracePeriodSeconds *int64 `json:"maxGracePeriodSeconds,omitempty"`

	// limits are how many objects the tenant may have in the super cluster, by
	// resource, such as pods, services.nodeports or gears.example.com. "*" is
	// every resource that is not named, and a negative number no limit.
	// Default: the limits of vc-syncer (--default-limits).
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Limits map[string]int64 `json:"limits,omitempty"`
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
