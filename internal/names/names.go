// Package names builds the names by which a tenant and its namespaces are known
// in the super cluster, and has the keys of the labels and annotations that
// hold them. Both the manager and the syncer build on it.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Domain is the domain of all label and annotation keys of VirtualCluster.
const Domain = "tenancy.x-k8s.io"

// Keys of the labels and annotations on the tenants' objects in the super
// cluster.
const (
	// Cluster holds the cluster key.
	Cluster = Domain + "/cluster"
	// UID holds the UID of the tenant's object.
	UID = Domain + "/uid"
	// Namespace holds the namespace of the tenant's object; on one without,
	// such as a namespace, its name.
	Namespace = Domain + "/namespace"
	// VCName holds the name of the VirtualCluster; label and annotation.
	VCName = Domain + "/vcname"
	// VCNamespace holds the namespace of the VirtualCluster; label and
	// annotation.
	VCNamespace = Domain + "/vcnamespace"
	// VCUID holds the UID of the VirtualCluster. Every write to a namespace
	// checks it.
	VCUID = Domain + "/vcuid"
	// ServiceCIDR is an annotation on the copies of a tenant's namespaces. It
	// holds the tenant's part of the pool of Service addresses, by which
	// ServiceAddressPolicy decides.
	ServiceCIDR = Domain + "/service-cidr"
	// SecondaryServiceCIDR is the same of the other IP family.
	SecondaryServiceCIDR = Domain + "/secondary-service-cidr"
	// ServiceCIDRPool is a label on the super cluster's ServiceCIDRs of which
	// tenants get parts, with the value true.
	ServiceCIDRPool = Domain + "/service-cidr-pool"
	// OwnerReferences holds the owner references of the tenant's object, as
	// JSON.
	OwnerReferences = Domain + "/ownerReferences"
	// Labels and Annotations hold the keys of the labels and annotations that
	// came from the tenant's object, separated by commas. Other keys are the
	// super cluster's own and are left alone.
	Labels      = Domain + "/labels"
	Annotations = Domain + "/annotations"
	// Values holds the values that came from the tenant's object in a field
	// where the super cluster may have added its own, separated by commas.
	Values = Domain + "/values"
	// Tokens is a label on Secrets that hold the tokens of one of the tenant's
	// pods. They are not copies.
	Tokens = Domain + "/tokens"
	// TokensOf holds the name of that pod, TokensRenewal the time after which
	// the tokens are to be renewed (RFC 3339).
	TokensOf      = Domain + "/tokens-of"
	TokensRenewal = Domain + "/tokens-renewal"
	// OwnIngress is a label on the copies of pods that the tenant's own
	// NetworkPolicies say about who is let in.
	OwnIngress = Domain + "/own-ingress"
	// OwnEgress is the same label for what they say about where pods connect to.
	OwnEgress = Domain + "/own-egress"
	// FromSuper is a label on the tenant's objects that were copied up from the
	// super cluster.
	FromSuper = Domain + "/from-super"
	// Public is a label on classes of the super cluster: with the value true,
	// all tenants are shown the class.
	Public = Domain + "/super.public"
	// Provisioner is an annotation on the root namespace: the provisioner of the
	// tenant's control plane. Of a VirtualCluster that names none, another
	// default of a later manager must not start a second control plane.
	Provisioner = Domain + "/provisioner"
	// TenantUID is an annotation on the root namespace: the UID of the tenant's
	// kube-system namespace, which distinguishes control planes at the same
	// address.
	TenantUID = Domain + "/tenant-uid"
	// ConfirmIdentity is an annotation on a VirtualCluster, by which an admin
	// accepts the control plane with that TenantUID in the place of the one
	// before.
	ConfirmIdentity = Domain + "/confirm-identity"
	// ConfirmRemoval is an annotation on a VirtualCluster with which an admin
	// confirms the deletion of a number of running pods whose tenant's objects
	// vanished without a deletion.
	ConfirmRemoval = Domain + "/confirm-removal"
	// DNS is an annotation on a tenant's namespace kube-system, by which the
	// tenant opts out of the DNS that is kept in place for it.
	DNS = Domain + "/dns"
	// DNSPort is a label on the EndpointSlices SharedDNSSlice. It holds the port
	// at which the shared DNS answers the tenant.
	DNSPort = Domain + "/dns-port"
	// DNSAddress is an annotation on the namespaces of converted tenants. It holds the
	// address of the tenant's DNS; empty for none.
	DNSAddress = Domain + "/dns-address"
	// DNSDomain is an annotation on the same EndpointSlices, and on these namespaces. It holds the DNS
	// domain of the tenant's cluster.
	DNSDomain = Domain + "/dns-domain"
	// ExternalName is an annotation on the copy of a Service of type ExternalName
	// that only the shared DNS may resolve. It holds the name.
	ExternalName = Domain + "/external-name"
	// Metrics is an annotation on a tenant's namespace kube-system, by which
	// the tenant opts out of the resource metrics API that is kept in place for
	// it.
	Metrics = Domain + "/metrics"
	// Requester is an annotation on a VirtualCluster: the user of the super cluster
	// who has requested the project. RequesterRole is the ClusterRole that the
	// user has in it.
	Requester     = Domain + "/requester"
	RequesterRole = Domain + "/requester-cluster-role"
	// RequesterBinding is an annotation on a tenant's namespace kube-system, by
	// which the tenant opts out of the binding of that ClusterRole.
	RequesterBinding = Domain + "/requester-binding"
	// ProjectClaim is an annotation on a VirtualCluster: the UID of the
	// ProjectClaim for which it was created. ProjectTemplate is a label: the name
	// of the template.
	ProjectClaim    = Domain + "/project-claim"
	ProjectTemplate = Domain + "/project-template"
	// Applied is an annotation on what the manager keeps in place in a tenant:
	// which state of it was applied.
	Applied = Domain + "/applied"
	// RotateCA is an annotation on the Secret of a serving certificate: a step of the
	// rotation of its CA, which the program that keeps the Secret takes.
	RotateCA = Domain + "/rotate-ca"
	// RestartedAt is an annotation on a VirtualCluster: a new value restarts
	// its control plane.
	RestartedAt = Domain + "/restartedAt"
	// ReplicasAwake is an annotation on a workload of a tenant that was scaled to
	// zero because the tenant's control plane sleeps. It holds the number of
	// replicas to scale it back to.
	ReplicasAwake = Domain + "/replicas-awake"
	// WokenAt is an annotation on a VirtualCluster: a control plane that fell
	// asleep before this time (RFC 3339) wakes, and is awake until then.
	WokenAt = Domain + "/wokenAt"
	// ApplicableRange is an annotation on the super cluster's CRDs: which tenants
	// may use the CRD. It holds a label selector over VirtualClusters, or
	// AllTenants.
	ApplicableRange = Domain + "/applicable-range"
	// CRDPolicy is an annotation on a tenant's namespace kube-system, by which
	// the tenant chooses between its own CRDs and those of the super cluster.
	CRDPolicy = Domain + "/crd-policy"
	// SharedCRD is a label on a tenant's CRDs that are copies of the super
	// cluster's. Its value is a random one that the record of the copy has too.
	SharedCRD = Domain + "/shared-crd"
	// FixedCRD is an annotation on such a copy that a tenant cannot make its own:
	// Forced or Replaced.
	FixedCRD = Domain + "/fixed-crd"
	// PurgeCRDs is an annotation on a VirtualCluster by which an admin deletes
	// CRDs of the tenant with all their objects: recalled ones, and those that a
	// forced one cannot replace. It holds name/UID, separated by commas.
	PurgeCRDs = Domain + "/purge-crds"
	// Networks is a label on the Secrets NetworksSecret.
	Networks = Domain + "/networks"
	// NetworkRecord is an annotation on the copies of pods that the provider of
	// their network prepares. It holds the network, as JSON.
	NetworkRecord = Domain + "/network-record"
	// NetworkService is an annotation on the Services that the syncer creates for a
	// network of a tenant, and on their EndpointSlices, and a label on the copies of
	// these Services. It holds the name of the Service that they stand for:
	// APIService or DNSService.
	NetworkService = Domain + "/network-service"
	// CRDSharingPolicy is a label on the super cluster's CRDs, with the value
	// Forced. Its domain is that of Arktos, whose manifests have it.
	CRDSharingPolicy = "arktos.futurewei.com/crd-sharing-policy"
)

// MemberPrefix begins the names that members of a tenant have inside, and those
// of their groups. No user of the tenant's own has such a name unless the
// tenant's admin makes one, and none of Kubernetes' own groups is among them, so
// that a member is permitted only what the tenant's RBAC permits to these names.
const MemberPrefix = "member:"

// Values of ApplicableRange, CRDSharingPolicy and FixedCRD.
const (
	AllTenants = "*"
	Forced     = "forced"
	Replaced   = "replaced"
)

// The NetworkPolicies that are in each namespace of a tenant in the super
// cluster: one admits nothing, the other admits all peers except other tenants'
// pods, to pods that the tenant's own policies do not select.
const (
	IsolationPolicy = "tenant-isolation." + Domain
	DefaultPolicy   = "tenant-default." + Domain
)

// EgressPolicy is the NetworkPolicy in each namespace of a tenant with networks
// that lets no pod connect to anything. NetworkEgressPolicy follows the name of a
// network in the name of the policy that lets its pods connect to each other.
const (
	EgressPolicy        = "tenant-egress." + Domain
	NetworkEgressPolicy = ".network-egress." + Domain
)

// ServiceAddressPolicy is the super cluster's ValidatingAdmissionPolicy that
// keeps the addresses of each tenant's part of the pool from the Services of
// others.
const ServiceAddressPolicy = "service-addresses." + Domain

// DNSService is the name of a tenant's DNS Service, in namespace kube-system, and
// APIService that of the Service of its apiserver, in namespace default.
const (
	DNSService = "kube-dns"
	APIService = "kubernetes"
)

// SharedDNSSlice is the EndpointSlice of the copy of a tenant's DNS Service by
// which this leads to the DNS that tenants share. Copies do not get the name.
const SharedDNSSlice = "shared-dns." + Domain

// SharedDNSSliceOf is the name of the EndpointSlice SharedDNSSlice of a DNS
// Service: those of networks have others.
func SharedDNSSliceOf(service string) string {
	if service == DNSService {
		return SharedDNSSlice
	}
	return service + "." + SharedDNSSlice
}

// IsSharedDNSSlice reports whether a name is one of SharedDNSSliceOf.
func IsSharedDNSSlice(name string) bool {
	return name == SharedDNSSlice || strings.HasSuffix(name, "."+SharedDNSSlice)
}

// Values of the annotation DNS: Dedicated asks for a CoreDNS of the tenant's
// own. Shared, as a value of the selector of the Service kube-dns, says that the
// shared DNS serves it.
const (
	Dedicated = "dedicated"
	Shared    = "shared"
)

// Unmanaged is the value of the annotations DNS and Metrics that opts out: what
// is there is left as it is.
const Unmanaged = "unmanaged"

// The Secret in the root namespace that holds the admin kubeconfig of the
// tenant, and its key.
const (
	AdminKubeconfigSecret = "admin-kubeconfig"
	AdminKubeconfigKey    = "admin-kubeconfig"
	// PlatformKubeconfigKey is the key of the platform's own kubeconfig in the
	// same Secret. A control plane that may sleep has one: requests of the
	// platform do not count as use.
	PlatformKubeconfigKey = "platform-kubeconfig"
	// InternalKubeconfigKey is the key of the admin's kubeconfig for clients inside
	// the super cluster, in the same Secret. Hosted control planes have one, with
	// the same credentials.
	InternalKubeconfigKey = "internal-kubeconfig"
	// GatewayKubeconfigKey is the key of the admin's kubeconfig through the
	// gateway in the same Secret.
	GatewayKubeconfigKey = "gateway-kubeconfig"
)

// GatewaySecret is the Secret in the root namespace with what the gateway needs
// of the control plane. It is the only one that the gateway can read.
const GatewaySecret = "gateway-access"

// The ConfigMap in the root namespace that holds the certificate authority by
// which the tenant's apiserver shows kubelets who it is, and its key.
const (
	KubeletClientCAConfigMap = "kubelet-client-ca"
	KubeletClientCAKey       = "ca.crt"
)

// maxLabel is the longest name of a namespace, which is a DNS label (RFC 1123).
const maxLabel = validation.DNS1123LabelMaxLength

// hashDigits is the least number of hex digits that keep shortened names apart
// (40 bits).
const hashDigits = 10

// ClusterKey is the key of a VirtualCluster: the name of its root namespace and
// the beginning of all its others. The UID keeps apart a VirtualCluster and its
// predecessor of the same name. The key can be longer than a namespace's name
// may be: see ValidateClusterKey.
func ClusterKey(namespace, name string, uid types.UID) string {
	return namespace + "-" + digest(6, string(uid)) + "-" + name
}

// slotDigits is the number of hex digits that keep users apart in the names of
// slots (80 bits).
const slotDigits = 20

// ProjectSlot returns the name of the VirtualCluster in a slot of a user: a user
// has as many projects of a template as there are slots, because names are
// unique.
func ProjectSlot(template, requester string, slot int32) string {
	return digest(slotDigits, template+"\x00"+requester) + "-" + strconv.Itoa(int(slot))
}

// ValidateClusterKey says what is wrong with a cluster key as the name of a
// namespace; empty if nothing is.
func ValidateClusterKey(key string) []string {
	return validation.IsDNS1123Label(key)
}

// PlatformPolicy reports whether a name is of the form of those of the platform's
// NetworkPolicies in the namespaces of tenants. No policy of a tenant has one.
func PlatformPolicy(name string) bool { return strings.HasSuffix(name, "."+Domain) }

// DefaultPolicyPart is the name of one of several NetworkPolicies that together
// are the default of a converted tenant's namespace, which one selector cannot
// express.
func DefaultPolicyPart(i int) string {
	if i == 0 {
		return DefaultPolicy
	}
	return "tenant-default-" + strconv.Itoa(i) + "." + Domain
}

// EffectivePolicy is the name of the NetworkPolicy that has the effect of a
// converted tenant's own.
func EffectivePolicy(own string) string {
	return "tenant-own-" + digest(hashDigits, own) + "." + Domain
}

// Field is the annotation on the copy of a pod that holds what a field of the
// tenant's pod says, for the pod's containers to read. The path is as in a
// fieldRef, such as metadata.labels['app'].
func Field(path string) string {
	return Domain + "/field-" + digest(hashDigits, path)
}

// TokenSecret is the name of the Secret with the tokens of a tenant's pod,
// beside the pod's copy.
func TokenSecret(pod string) string {
	// A dot is not followed by a dash in a name, nor by another dot.
	return strings.TrimSuffix(pod[:min(len(pod), maxTokenHead)], ".") + tokenInfix + digest(hashDigits, pod)
}

const (
	tokenInfix = "-tokens-"
	// maxTokenHead is how much of a pod's name that of its tokens' Secret
	// begins with.
	maxTokenHead = validation.DNS1123SubdomainMaxLength - len(tokenInfix) - hashDigits
)

// SharedCRDsSecret is the name of the Secret in the root namespace that records
// the copies of shared CRDs.
const SharedCRDsSecret = "shared-crds"

// NetworksSecret is the name of the Secret in the root namespace that records
// which networks were handed to providers.
const NetworksSecret = "networks"

// OwnCRDSecret is the name of the Secret in the root namespace with the spec of
// a tenant's own CRD while the super cluster's replaces it.
func OwnCRDSecret(crd string) string {
	return "own-crd-" + strings.TrimRight(crd[:min(len(crd), maxLabel)], "-.") + "-" + digest(hashDigits, crd)
}

// IsTokenSecret reports whether a name can be that of a Secret with the tokens
// of some pod. The hash of a name that was cut cannot be checked.
func IsTokenSecret(name string) bool {
	i := strings.LastIndex(name, tokenInfix)
	if i < 0 {
		return false
	}
	head, hash := name[:i], name[i+len(tokenInfix):]
	return len(hash) == hashDigits && (hash == digest(hashDigits, head) || len(head) >= maxTokenHead-1)
}

// SuperNamespace is the super cluster's namespace of a tenant's namespace. A
// name that would be too long keeps its head and ends in a hash of the whole.
func SuperNamespace(clusterKey, tenantNamespace string) string {
	return shorten(clusterKey + "-" + tenantNamespace)
}

// BeginsNamespace reports whether the name of a namespace in the super cluster
// begins with a cluster key.
func BeginsNamespace(clusterKey, superNamespace string) bool {
	const head = maxLabel - hashDigits - 1
	beginning := clusterKey + "-"
	if len(superNamespace) == maxLabel && len(beginning) > head {
		beginning = strings.TrimRight(beginning[:head], "-") + "-" // of a name that was cut
	}
	return strings.HasPrefix(superNamespace, beginning)
}

// TenantText takes the super cluster's names out of a text that a tenant will
// read: the super cluster's namespace of the namespace that the text is about
// becomes the tenant's, and what else begins with the cluster key loses it.
// virtualCluster is the name that stands for the key alone.
func TenantText(text, clusterKey, virtualCluster, namespace string) string {
	pairs := []string{clusterKey + "-", "", clusterKey, virtualCluster}
	found := strings.Contains(text, clusterKey)
	if namespace != "" {
		// A long key is cut in the names of namespaces, so this one may not
		// contain it.
		super := SuperNamespace(clusterKey, namespace)
		pairs = append([]string{super, namespace}, pairs...)
		found = found || strings.Contains(text, super)
	}
	if !found { // most texts: a replacer costs more than the search
		return text
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// shorten cuts a name to the length of a label: a readable head, then a hash of
// the whole name. A shortened name is exactly as long as a label may be, and an
// unchanged name is shorter, so no tenant can choose a name that equals a
// shortened one.
func shorten(name string) string {
	if len(name) < maxLabel {
		return name
	}
	head := strings.TrimRight(name[:maxLabel-hashDigits-1], "-")
	return head + "-" + digest(maxLabel-len(head)-1, name)
}

// digest is the first hex digits of the SHA-256 of s.
func digest(digits int, s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}

// PlatformKubeconfig returns the kubeconfig that the platform uses of a Secret
// with a tenant's kubeconfigs.
func PlatformKubeconfig(secret map[string][]byte) []byte {
	if own := secret[PlatformKubeconfigKey]; len(own) > 0 {
		return own
	}
	return secret[AdminKubeconfigKey]
}
