package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Label is the label on a pod or a Service that names its network, and on a
	// ServiceCIDR whose addresses are those of the network's Services.
	Label = "arktos.futurewei.com/network"
	// DefaultLabel is the label on the ServiceCIDRs of the default network, to
	// which Services without [Label] belong.
	DefaultLabel = "arktos.futurewei.com/default-network"
	// Finalizer is on networks that are or were ready, until nothing uses them.
	Finalizer = "arktos.futurewei.com/network"
	// NICAnnotation is the annotation by which a pod asks for a network interface,
	// as JSON with name, subnet and ip. It has no effect on networks of type flat.
	NICAnnotation = "arktos.futurewei.com/nic"
	// CNIArgsAnnotation is the annotation on the copy of a pod with what its
	// provider has for the CNI plugin.
	CNIArgsAnnotation = "arktos.futurewei.com/cni-args"
	// ReadinessAnnotation is the annotation on the copy of a pod that its provider
	// prepares: false until then, and true afterwards.
	ReadinessAnnotation = "arktos.futurewei.com/network-readiness"
	// ReadinessGate is the scheduling gate that holds the copy back.
	ReadinessGate = "arktos.futurewei.com/network-readiness"
)

// Types of networks that have a meaning here. Others belong to providers.
const (
	// TypeFlat is the network of the super cluster.
	TypeFlat = "flat"
	// TypeVPC is a virtual private cloud, named by spec.vpcID.
	TypeVPC = "vpc"
)

// IPAM is who allocates the addresses of Services.
//
// +kubebuilder:validation:Enum=Arktos;External
type IPAM string

const (
	// IPAMArktos leaves the addresses to the tenant's apiserver.
	IPAMArktos IPAM = "Arktos"
	// IPAMExternal leaves the addresses to the provider of the network.
	IPAMExternal IPAM = "External"
)

// CIDR is a range of addresses in CIDR notation, without host bits.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).masked() == cidr(self)",message="must be a range in CIDR notation with no host bits set, such as 192.0.2.0/24"
type CIDR string

// NetworkSpec is what the tenant wants of a network.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'flat' || !has(self.vpcID)",message="vpcID is for other types than flat"
// +kubebuilder:validation:XValidation:rule="self.type != 'vpc' || has(self.vpcID)",message="a network of type vpc needs vpcID"
// +kubebuilder:validation:XValidation:rule="self.type != 'flat' || !has(self.service) || !has(self.service.ipam) || self.service.ipam != 'External'",message="service.ipam External is for other types than flat, which have a provider"
// +kubebuilder:validation:XValidation:rule="has(self.vpcID) == has(oldSelf.vpcID)",message="vpcID cannot be added or removed after creation"
type NetworkSpec struct {
	// type is the kind of network: flat, the network of the super cluster, or one
	// that a provider offers, such as vpc.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable"
	Type string `json:"type"`

	// vpcID is the provider's name of a network of type vpc.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="vpcID is immutable"
	VPCID string `json:"vpcID,omitempty"`

	// service is about the addresses of the network's Services.
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`

	// egress is what pods of the network reach outside of the cluster. Default:
	// all addresses. The network's own pods, the DNS and the apiserver of the
	// cluster are reached in any case; other pods, and addresses that belong to the
	// platform, in none.
	// +optional
	Egress *Egress `json:"egress,omitempty"`
}

// HasExternalAddresses reports whether the provider of the network gives the
// Services their addresses.
func (s *NetworkSpec) HasExternalAddresses() bool {
	return s.Service != nil && s.Service.IPAM == IPAMExternal
}

// HasServiceRanges reports whether Services get addresses of the network's
// ranges. Those with addresses of the provider have ranges for the provider.
func (s *NetworkSpec) HasServiceRanges() bool {
	return s.Service != nil && len(s.Service.CIDRs) > 0 && !s.HasExternalAddresses()
}

// EgressType is a choice of addresses outside of the cluster.
//
// +kubebuilder:validation:Enum=All;None;CIDRs
type EgressType string

const (
	// EgressAll is all addresses.
	EgressAll EgressType = "All"
	// EgressNone is no address.
	EgressNone EgressType = "None"
	// EgressCIDRs is the addresses in the ranges of cidrs.
	EgressCIDRs EgressType = "CIDRs"
)

// Egress is the addresses outside of the cluster that pods of a network reach.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'CIDRs') == has(self.cidrs)",message="cidrs is required if type is CIDRs, and forbidden otherwise"
type Egress struct {
	// type is All, None, or CIDRs for the ranges of cidrs.
	// +required
	// +unionDiscriminator
	Type EgressType `json:"type"`

	// cidrs are ranges of addresses.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	CIDRs []CIDR `json:"cidrs,omitempty"`
}

// ServiceSpec is about the addresses of a network's Services.
//
// +kubebuilder:validation:MinProperties=1
type ServiceSpec struct {
	// cidrs are the ranges of the addresses, within the tenant's range of Service
	// addresses. Default: what no other network has of that range.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, !isCIDR(a) || self.exists_one(b, isCIDR(b) && (cidr(b).containsCIDR(a) || cidr(a).containsCIDR(b))))",message="cidrs must not overlap"
	CIDRs []CIDR `json:"cidrs,omitempty"`

	// ipam is who allocates the addresses. Default: Arktos.
	// +optional
	IPAM IPAM `json:"ipam,omitempty"`
}

// Phase is the coarse state of a network, for people; programs read the
// conditions.
//
// +kubebuilder:validation:Enum=Pending;Ready;Failed;Unknown;Terminating
type Phase string

const (
	// PhasePending means that the network is not provisioned yet.
	PhasePending Phase = "Pending"
	// PhaseReady means that the network can be used.
	PhaseReady Phase = "Ready"
	// PhaseFailed means that the network is faulty.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown means that the state of the network is not known.
	PhaseUnknown Phase = "Unknown"
	// PhaseTerminating means that the network was deleted, and that pods still
	// use it.
	PhaseTerminating Phase = "Terminating"
)

// ConditionReady is the type of the condition that reports whether pods can use
// a network.
const ConditionReady = "Ready"

// Reasons of ConditionReady.
const (
	// ReasonReady: pods can use the network.
	ReasonReady = "Ready"
	// ReasonNoProvider: no provider offers the type of the network.
	ReasonNoProvider = "NoProvider"
	// ReasonProvisioning: the provider is making the network.
	ReasonProvisioning = "Provisioning"
	// ReasonNoDNSServiceIP: the provider has not allocated the address of the DNS
	// service yet.
	ReasonNoDNSServiceIP = "NoDNSServiceIP"
	// ReasonProviderFailed: the provider does not work.
	ReasonProviderFailed = "ProviderFailed"
	// ReasonNameTaken: an earlier network of the name is not deleted yet.
	ReasonNameTaken = "NameTaken"
	// ReasonReleasing: the provider is deleting the network.
	ReasonReleasing = "Releasing"
	// ReasonServiceRangesUnsupported: the tenant's apiserver does not allocate
	// Service addresses by network.
	ReasonServiceRangesUnsupported = "ServiceRangesUnsupported"
	// ReasonServiceRangesOutside: a range is outside of the tenant's own.
	ReasonServiceRangesOutside = "ServiceRangesOutside"
	// ReasonServiceRangesOverlap: a range overlaps with one of another network.
	ReasonServiceRangesOverlap = "ServiceRangesOverlap"
	// ReasonTooManyNetworks: the tenant has more networks than it may use.
	ReasonTooManyNetworks = "TooManyNetworks"
	// ReasonPodsLeft: the network is deleted when its pods have ended.
	ReasonPodsLeft = "PodsLeft"
)

// ConditionServiceRanges is the type of the condition of a network with ranges of
// Service addresses. It reports whether the addresses of Services are as the
// ranges say, and one is left. Pods can use the network in any case.
const ConditionServiceRanges = "ServiceRanges"

// Reasons of ConditionServiceRanges.
const (
	// ReasonServiceRangesAvailable: an address is left.
	ReasonServiceRangesAvailable = "ServiceRangesAvailable"
	// ReasonServiceRangesExhausted: no address is left.
	ReasonServiceRangesExhausted = "ServiceRangesExhausted"
	// ReasonServiceRangeInUse: Services have addresses of an earlier time, before
	// a range was added or removed.
	ReasonServiceRangeInUse = "ServiceRangeInUse"
)

// ConditionServices is the type of the condition that reports whether a network
// has its Services kubernetes-<network> and kube-dns-<network>. Pods can use the
// network in any case.
const ConditionServices = "Services"

// Reasons of ConditionServices.
const (
	// ReasonServicesCreated: the Services exist.
	ReasonServicesCreated = "ServicesCreated"
	// ReasonServiceNameTaken: a Service of the tenant's own has the name of one.
	ReasonServiceNameTaken = "ServiceNameTaken"
	// ReasonServiceNameTooLong: the name of one would be too long.
	ReasonServiceNameTooLong = "ServiceNameTooLong"
	// ReasonServiceRejected: the tenant's apiserver rejects one, for example because
	// no address is left.
	ReasonServiceRejected = "ServiceRejected"
)

// NetworkStatus is the state of a network. Only the platform writes it.
type NetworkStatus struct {
	// phase is the coarse state.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// dnsServiceIP is the address of the network's DNS service, as the provider of
	// a network with external addresses has allocated it.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	DNSServiceIP string `json:"dnsServiceIP,omitempty"`

	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions has Ready, Services unless it is the default network, and
	// ServiceRanges for a network with ranges.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Network is a network inside of a tenant's cluster. It spans namespaces: a pod
// or Service of any namespace names its network by the label
// arktos.futurewei.com/network, and belongs to the default network without it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=net;ne
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="VPC",type=string,JSONPath=`.spec.vpcID`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="DNS",type=string,JSONPath=`.status.dnsServiceIP`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a network must be a DNS label of at most 63 characters, since it is the value of a label"
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the tenant wants of the network.
	// +required
	Spec NetworkSpec `json:"spec"`

	// status is the state of the network.
	// +optional
	Status NetworkStatus `json:"status,omitempty"`
}

// NetworkList is a list of networks.
//
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Network `json:"items"`
}
