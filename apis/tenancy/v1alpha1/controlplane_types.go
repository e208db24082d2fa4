package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// ControlPlaneSpec configures the control plane of provisioner Hosted. Tenants of
// provisioner Converted have limits.storage and limits.objects alone.
type ControlPlaneSpec struct {
	// isolation is what the apiserver shares with those of other tenants.
	// Dedicated has a handler chain of its own. Shared is one chain for all
	// tenants of a host, which takes much less memory; data, credentials,
	// authentication, authorization and admission are each tenant's own in both.
	// A change restarts the control plane and keeps its data. Default: by the
	// host's --tenant-isolation.
	// +optional
	Isolation Isolation `json:"isolation,omitempty"`

	// limits are what the control plane may take of the process that hosts it,
	// and of the store that it shares with others. They can be changed while it
	// runs. A limit below what is used deletes nothing: the tenant cannot grow
	// until it has deleted enough.
	// +optional
	Limits *ControlPlaneLimits `json:"limits,omitempty"`

	// store is the name of the ControlPlaneStore that is to have the data of the
	// control plane. A change moves the data, for which the control plane is
	// stopped for some seconds; requests wait. The condition Moved reports that.
	// Default: where the manager has placed it, or where it is.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Store string `json:"store,omitempty"`

	// sleep is when the control plane is stopped because it is not used. It
	// wakes when it is needed. Default: by the host's --sleep-after-idle.
	// +optional
	Sleep *SleepSpec `json:"sleep,omitempty"`

	// extraSANs are further DNS names and IP addresses in the certificate of the
	// apiserver. Clients reach the control plane by these DNS names at the address
	// of all control planes: records of them have to lead there. They can be changed
	// while it runs. Names of the platform, and those that another control plane
	// has, are rejected, which the condition ExtraSANsValid reports.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="extraSANs must be IP addresses or complete DNS names in lower case, such as shop.example.com; wildcards are not possible"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip.isCanonical(self) && ip(self).isGlobalUnicast()",message="an IP address in extraSANs must be a unicast address of a network, in its canonical form"
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || !(self.split('.').exists(label, label == 'svc') || self.endsWith('.localhost') || self.endsWith('.cluster.local') || self.endsWith('.vc.internal') || self in ['cluster.local', 'vc.internal', 'kubernetes.default'])",message="extraSANs cannot be names of Services, of the machine, or of vc-host"
	ExtraSANs []string `json:"extraSANs,omitempty"`

	// serviceAccountIssuer is the issuer in the tokens of the tenant's service
	// accounts: a URL of this tenant at the gateway, such as
	// https://gw.example.com/tenants/CLUSTERKEY. The gateway serves its discovery
	// documents to everyone, so that others can verify these tokens. A change
	// restarts the control plane; tokens with the default issuer stay valid, those
	// with another one do not. Default: a name that only pods of the tenant resolve,
	// and no public documents.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://[^/?#@%\s]+(/[A-Za-z0-9._~-]+)*$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="serviceAccountIssuer must be a URL such as https://gw.example.com/tenants/CLUSTERKEY"
	ServiceAccountIssuer string `json:"serviceAccountIssuer,omitempty"`
}

// Isolation names what the apiserver of a hosted control plane shares with
// others.
//
// +kubebuilder:validation:Enum=Dedicated;Shared
type Isolation string

const (
	// IsolationDedicated is an apiserver with a handler chain of its own.
	IsolationDedicated Isolation = "Dedicated"
	// IsolationShared is one handler chain for all tenants of a host.
	IsolationShared Isolation = "Shared"
)

// ControlPlaneLimits limit what the tenant stores and how many requests it has
// in flight. The platform's own controllers of the tenant are exempt from the
// limits of requests.
type ControlPlaneLimits struct {
	// storage is the size of all objects together, as they are stored.
	// Deletions and updates that do not grow an object are always possible.
	// Default: by the host's --tenant-storage.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="storage must be 1Mi to 1Ti"
	Storage *resource.Quantity `json:"storage,omitempty"`

	// objects is the number of objects of all kinds, custom resources, Events
	// and Leases included. Default: by the host's --tenant-objects.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=100000000
	Objects *int64 `json:"objects,omitempty"`

	// expressions is how much work it is to compile the expressions of all
	// policies, webhooks, CustomResourceDefinitions and devices together, in
	// expressions of the usual length, about a hundred characters. The host
	// keeps their programs in memory. Default: by the host's
	// --tenant-expressions.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000000
	Expressions *int64 `json:"expressions,omitempty"`

	// writesPerSecond is the rate of writes. A burst may have as many as ten
	// seconds. Default: by the host's --tenant-writes-per-second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	WritesPerSecond *int32 `json:"writesPerSecond,omitempty"`

	// writeBytesPerSecond is the rate of the bytes written, since the store
	// keeps what is overwritten for a while. A burst may have as many as ten
	// seconds. Default: by the host's --tenant-writes.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('256Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="writeBytesPerSecond must be 256Ki to 1Ti: an object of the largest size has to fit into a burst"
	WriteBytesPerSecond *resource.Quantity `json:"writeBytesPerSecond,omitempty"`

	// concurrentReads is the number of gets and lists that are served at a
	// time. More of them wait for a moment, and are then rejected with the
	// status 429. Default: by the host's --tenant-concurrent-reads.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	ConcurrentReads *int32 `json:"concurrentReads,omitempty"`

	// concurrentWrites is the number of requests that write and are served at a
	// time. More of them wait for a moment, and are then rejected with the
	// status 429. Default: by the host's --tenant-concurrent-writes.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	ConcurrentWrites *int32 `json:"concurrentWrites,omitempty"`

	// concurrentWatches is the number of watches and other long-running
	// requests, such as logs, exec and proxies. The syncer has about twenty
	// watches in a tenant. More are rejected with the status 429. Default: by
	// the host's --tenant-concurrent-watches.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=100000
	ConcurrentWatches *int32 `json:"concurrentWatches,omitempty"`
}
