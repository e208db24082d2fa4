// Package chain serves the Kubernetes API of many tenants with one apiserver.
//
// The registries of upstream's kube-apiserver exist once. Their storage takes
// the tenant from the context of a request ([keyspace]), and fails without one.
// All that upstream keeps in memory about one cluster exists for each tenant,
// and is created when it is first needed: the filters with authentication and
// authorization, RBAC, admission, the server of custom resources. A [Tenant]
// has these parts.
//
// The package repeats the assembly of kube-apiserver from its public parts, and
// no other package does. docs/kubernetes-minors.md lists what to compare when
// Kubernetes is updated.
package chain
