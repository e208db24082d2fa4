package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProvisionerType names a way to run a tenant's control plane: one of those
// below, or one that a platform has added to vc-manager. It is a word in camel
// case of at most 63 letters and digits.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
type ProvisionerType string

const (
	// ProvisionerNative runs the control plane as pods of the super cluster,
	// from a ClusterVersion. It is not implemented yet.
	ProvisionerNative ProvisionerType = "Native"
	// ProvisionerHosted runs the control plane inside a process that hosts many
	// of them.
	ProvisionerHosted ProvisionerType = "Hosted"
	// ProvisionerExternal uses a control plane that runs elsewhere, by a kubeconfig.
	ProvisionerExternal ProvisionerType = "External"
	// ProvisionerConverted runs no control plane: the gateway converts the
	// tenant's requests to requests of the super cluster.
	ProvisionerConverted ProvisionerType = "Converted"
)

// Phase is the coarse state of a VirtualCluster, for people; programs read the
// conditions.
//
// +kubebuilder:validation:Enum=Pending;Running;Asleep;Paused;Error;Terminating
type Phase string

const (
	// PhasePending means that the control plane is being made or is not reachable yet.
	PhasePending Phase = "Pending"
	// PhaseRunning means that the control plane serves its tenant.
	PhaseRunning Phase = "Running"
	// PhaseAsleep means that the control plane is stopped until it is used.
	PhaseAsleep Phase = "Asleep"
	// PhasePaused means that the control plane is stopped until spec.paused is
	// unset.
	PhasePaused Phase = "Paused"
	// PhaseError means that an admin has to act; the conditions say what to do.
	PhaseError Phase = "Error"
	// PhaseTerminating means that the tenant and all that belongs to it is
	// being removed.
	PhaseTerminating Phase = "Terminating"
)

// VirtualClusterSpec is what a platform admin wants of a tenant. The empty spec
// is a good one.
//
// +kubebuilder:validation:XValidation:rule="has(self.external) == (has(self.provisioner) && self.provisioner == 'External')",message="external must be set when provisioner is External, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.controlPlane) || !has(self.external)",message="controlPlane is for provisioner Hosted: an external control plane is configured where it runs"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.paused) || !self.paused",message="paused is for provisioner Hosted: an external control plane is stopped where it runs"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !has(self.members) || size(self.members) == 0",message="members are for provisioner Hosted: to an external control plane, users bring credentials of its own"
// +kubebuilder:validation:XValidation:rule="has(self.serviceCidr) == has(oldSelf.serviceCidr)",message="serviceCidr cannot be added or removed after creation"
// +kubebuilder:validation:XValidation:rule="has(self.secondaryServiceCidr) == has(oldSelf.secondaryServiceCidr)",message="secondaryServiceCidr cannot be added or removed after creation"
// +kubebuilder:validation:XValidation:rule="!has(self.secondaryServiceCidr) || has(self.serviceCidr)",message="secondaryServiceCidr needs serviceCidr"
// +kubebuilder:validation:XValidation:rule="!has(self.secondaryServiceCidr) || !has(self.serviceCidr) || !isCIDR(self.serviceCidr) || !isCIDR(self.secondaryServiceCidr) || cidr(self.serviceCidr).ip().family() != cidr(self.secondaryServiceCidr).ip().family()",message="secondaryServiceCidr and serviceCidr must be of different IP families"
// +kubebuilder:validation:XValidation:rule="has(self.clusterDomain) == has(oldSelf.clusterDomain)",message="clusterDomain cannot be added or removed after creation"
// +kubebuilder:validation:XValidation:rule="has(self.provisioner) == has(oldSelf.provisioner)",message="provisioner cannot be added or removed after creation"
// +kubebuilder:validation:XValidation:rule="has(self.alias) || !has(oldSelf.alias)",message="alias cannot be removed"
type VirtualClusterSpec struct {
	// alias is a name by which the gateway finds the tenant, beside the cluster
	// key. Of several VirtualClusters with an alias, the oldest has it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="alias is immutable"
	// +kubebuilder:validation:XValidation:rule="!(self in ['system', 'projects'])",message="alias is a name of the gateway: choose another one"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[a-z0-9].*-[0-9a-f]{6}-.*[a-z0-9]$')",message="alias has the form of a cluster key (a name, six hexadecimal digits and a name): choose another one"
	Alias string `json:"alias,omitempty"`

	// members are the users and groups of the super cluster who see the tenant as
	// a project, and whose requests the gateway forwards to it. They are permitted
	// nothing inside: the RBAC of the tenant decides, where their names begin with
	// member:.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Members []Member `json:"members,omitempty"`

	// clusterDomain is the DNS domain of the tenant's cluster. Default: cluster.local.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.split('.').all(label, size(label) <= 63)",message="each label of clusterDomain must have at most 63 characters"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterDomain is immutable"
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// clusterVersionName names the ClusterVersion from which the Native
	// provisioner builds the control plane. It has no effect yet: Native is not
	// implemented, and the other provisioners ignore it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterVersionName string `json:"clusterVersionName,omitempty"`

	// pkiExpireDays is how long the tenant's certificates live. They are
	// renewed before they expire. Default: 365.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	PKIExpireDays int64 `json:"pkiExpireDays,omitempty"`

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

	// serviceCidr is the range of the tenant's Service addresses: 8 to 1048576
	// of them, which is what an apiserver takes. Default: a part of
	// vc-manager's --service-cidr-pool that no other tenant has or, without
	// one, the provisioner's.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).masked() == cidr(self)",message="serviceCidr must be a network in CIDR notation with no host bits set, such as 10.96.0.0/16"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || ((cidr(self).ip().family() == 4 ? 32 : 128) - cidr(self).prefixLength()) in [3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]",message="serviceCidr must hold 8 to 1048576 addresses: a prefix of /12 to /29 for IPv4, /108 to /125 for IPv6"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serviceCidr is immutable"
	ServiceCIDR string `json:"serviceCidr,omitempty"`

	// secondaryServiceCidr is the range of the tenant's Service addresses of the
	// other IP family, with which Services can be dual-stack. Default: a part of
	// vc-manager's --secondary-service-cidr-pool or, without one, none.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).masked() == cidr(self)",message="secondaryServiceCidr must be a network in CIDR notation with no host bits set, such as fd00:10:96::/112"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || ((cidr(self).ip().family() == 4 ? 32 : 128) - cidr(self).prefixLength()) in [3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]",message="secondaryServiceCidr must hold 8 to 1048576 addresses: a prefix of /12 to /29 for IPv4, /108 to /125 for IPv6"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="secondaryServiceCidr is immutable"
	SecondaryServiceCIDR string `json:"secondaryServiceCidr,omitempty"`

	// weight is the tenant's share of the syncer while several tenants have
	// work. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`

	// provisioner is the way in which the control plane runs: Hosted, External,
	// Converted, or another one that this vc-manager offers, which the condition
	// ProvisionerAvailable lists. Default: by the manager's --default-provisioner.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provisioner is immutable"
	Provisioner ProvisionerType `json:"provisioner,omitempty"`

	// kubernetesVersion is the version of the tenant's control plane, such as
	// v1.36.3 or 1.36. Default: the newest that the provisioner has.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+(\.[0-9]+)?$`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// paused stops a Hosted control plane until it is set to false. Its data is
	// kept, the tenant's pods continue to run, nothing is synced, and
	// connections to it are closed.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// external says where a control plane of provisioner External is.
	// +optional
	External *ExternalControlPlane `json:"external,omitempty"`

	// controlPlane configures a control plane of provisioner Hosted.
	// +optional
	ControlPlane *ControlPlaneSpec `json:"controlPlane,omitempty"`

	// sync is what the syncer syncs for the tenant, where it differs from the default.
	// +optional
	Sync *SyncSpec `json:"sync,omitempty"`

	// policy is what the tenant's pods may ask of the super cluster. Default:
	// nothing that reaches beyond the tenant.
	// +optional
	Policy *TenantPolicy `json:"policy,omitempty"`

	// quota limits what the tenant has in the super cluster. Default: no limits.
	// +optional
	Quota *QuotaSpec `json:"quota,omitempty"`
}

// MemberKind says what a member is.
//
// +kubebuilder:validation:Enum=User;Group
type MemberKind string

const (
	// MemberUser is the user with the name.
	MemberUser MemberKind = "User"
	// MemberGroup is each user in the group with the name.
	MemberGroup MemberKind = "Group"
)

// Member is a user of the super cluster, or are the users of a group.
type Member struct {
	// kind is User or Group.
	// +required
	Kind MemberKind `json:"kind"`
	// name is that of the user or the group, as the super cluster's apiserver
	// authenticates it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ExternalControlPlane is a control plane that runs elsewhere.
type ExternalControlPlane struct {
	// kubeconfigSecretName names a Secret in the VirtualCluster's namespace
	// whose key kubeconfig holds an admin kubeconfig of the control plane. A
	// changed Secret is followed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	KubeconfigSecretName string `json:"kubeconfigSecretName"`
}

// VirtualClusterStatus is what stands. The manager writes it, except for the
// quota and the conditions Syncing, RulesValid and QuotaEnforced, and WithinLimits
// of a converted tenant, which are the syncer's.
type VirtualClusterStatus struct {
	// phase is the coarse state, for people.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// message explains the phase.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// reason is the reason of the phase, one word in camel case.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// observedGeneration is the generation of the spec that this status answers.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// clusterNamespace is the tenant's root namespace in the super cluster. It
	// is also the cluster key with which the names of all its other namespaces
	// begin.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ClusterNamespace string `json:"clusterNamespace,omitempty"`

	// provisioner is the way in which the control plane runs: that of the spec
	// or, for a spec without one, the default when the tenant was created.
	// +optional
	Provisioner ProvisionerType `json:"provisioner,omitempty"`

	// endpoint is the URL of the tenant's apiserver.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`

	// podEndpoint is the URL at which pods reach the tenant's apiserver, where
	// that is another one than endpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	PodEndpoint string `json:"podEndpoint,omitempty"`

	// serviceCidr is the tenant's own part of the Service addresses of the
	// super cluster: a Service has the same address in both. Empty if the
	// tenant has none; the super cluster then gives the copies addresses of its
	// own.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	ServiceCIDR string `json:"serviceCidr,omitempty"`

	// secondaryServiceCidr is the same of the other IP family.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	SecondaryServiceCIDR string `json:"secondaryServiceCidr,omitempty"`

	// version is the Kubernetes version that the control plane runs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// wakeTime is when a control plane that sleeps wakes by itself, for a CronJob
	// or by its schedule.
	// +optional
	WakeTime *metav1.Time `json:"wakeTime,omitempty"`

	// quota is what the tenant has of what spec.quota limits. The syncer writes it.
	// +optional
	Quota *QuotaStatus `json:"quota,omitempty"`

	// conditions are ProvisionerAvailable, ControlPlaneReady, Syncing, Synced and
	// Ready, Awake of a hosted control plane, WithinLimits of a hosted control plane
	// or a converted tenant, QuotaEnforced where there is a quota, RulesValid where
	// there are rules, and AliasHeld where there is an alias.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VirtualCluster is a tenant: a Kubernetes control plane of its own, on a super
// cluster shared with others.
//
// The name is part of the names of all the tenant's namespaces in the super
// cluster, so it is a short DNS label.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=vc,categories=tenancy
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Weight",type=integer,priority=1,JSONPath=`.spec.weight`
// +kubebuilder:printcolumn:name="Alias",type=string,priority=1,JSONPath=`.spec.alias`
// +kubebuilder:selectablefield:JSONPath=`.spec.alias`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=`.status.clusterNamespace`
// +kubebuilder:printcolumn:name="Quota",type=string,priority=1,JSONPath=`.status.quota.summary`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",message="metadata.name must be a DNS label (lower case letters, digits and '-') of at most 40 characters, because it is part of the names of the tenant's namespaces"
type VirtualCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the platform admin wants. --- The default closes a gap:
	// fields are immutable by comparison with the old spec, so there has to be
	// one.
	//
	// +optional
	// +kubebuilder:default:={}
	Spec VirtualClusterSpec `json:"spec,omitempty"`
	// status is what stands.
	// +optional
	Status VirtualClusterStatus `json:"status,omitempty"`
}

// VirtualClusterList is a list of VirtualClusters.
//
// +kubebuilder:object:root=true
type VirtualClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualCluster `json:"items"`
}
