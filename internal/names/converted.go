package names

// Converted is a label on the namespaces of a converted tenant in the super
// cluster, and on all objects in them. It holds the cluster key. An admission
// policy of the super cluster sets it, so that no writer can omit it.
const Converted = Domain + "/converted"

// Annotations on the namespaces of a converted tenant in the super cluster: where
// clients in pods find the tenant's API, and the CA of that, in PEM.
const (
	GatewayHost = Domain + "/gateway-host"
	GatewayPort = Domain + "/gateway-port"
	GatewayCA   = Domain + "/gateway-ca"
	// DaemonSets is an annotation on a namespace of a converted tenant: the policy for
	// DaemonSets.
	DaemonSets = Domain + "/daemonsets"
)

// Policy is an annotation on the namespaces of a converted tenant in the super
// cluster: what its policy permits.
const Policy = Domain + "/policy"

// The super cluster's MutatingAdmissionPolicies for converted tenants: one sets
// the label Converted on objects, one keeps the platform's labels and
// annotations of namespaces, one directs clients in pods to the gateway, and one keeps the tenant's NetworkPolicies from selecting pods.
const (
	ConvertedPolicy          = "converted-objects." + Domain
	ConvertedNamespacePolicy = "converted-namespaces." + Domain
	ConvertedClientPolicy    = "converted-clients." + Domain
	ConvertedTrafficPolicy   = "converted-traffic." + Domain
)

// ConvertedAccount is the ServiceAccount in the root namespace as which the
// gateway sends requests that are for one namespace of a converted tenant.
// ConvertedRole is the ClusterRole that it has in each of these namespaces, and
// the name of the bindings.
const (
	ConvertedAccount = "converted"
	ConvertedRole    = "converted-tenant." + Domain
	// ConvertedRootRole is the ClusterRole that it has in the root namespace.
	ConvertedRootRole = "converted-root." + Domain
)

// ConvertedFinalizer holds the binding of ConvertedRole in a namespace that is
// deleted, until nothing else is left.
const ConvertedFinalizer = Domain + "/converted"

// ConvertedCRDs is the ClusterRole of a converted tenant with CRDs, and its
// binding, followed by the cluster key: what its service account may do with
// custom resources.
const ConvertedCRDs = "converted-crds." + Domain + ":"

// ConvertedGroups begins the API groups of all converted tenants' CRDs in the
// super cluster.
const ConvertedGroups = "vc-"

// ConvertedGroup begins the API groups of a converted tenant's CRDs in the super
// cluster, which no other tenant has.
func ConvertedGroup(clusterKey string) string {
	return ConvertedGroups + digest(groupDigits, clusterKey) + "."
}

// groupDigits keeps the groups of tenants apart: two tenants have the same
// beginning with a probability of 2^-64.
const groupDigits = 16

// AdmissionLabel is a label on the namespaces of a converted tenant that has
// webhooks or policies of its own, and ConvertedAdmission the name of the super
// cluster's webhooks, which select namespaces by the label.
const (
	AdmissionLabel     = Domain + "/admission"
	ConvertedAdmission = "converted-admission." + Domain
)

// ConversionPath begins the paths at which the super cluster calls the gateway to
// convert custom resources of a converted tenant. The cluster key and the CRD
// follow.
const ConversionPath = "/converted-conversion/"

// ConvertedUser is the key of the extra of a user that has the tenant's user of
// a request that the gateway sends.
const ConvertedUser = Domain + "/user"

// ShelvedGroup is the API group of the types in the super cluster of objects that
// have no effect there.
const ShelvedGroup = "shelved." + Domain
