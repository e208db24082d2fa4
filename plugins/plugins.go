// Package plugins is the contract between the syncer and the validators that a
// platform adds to it. A validator decides whether an object of a tenant may be
// synced down.
//
// A plugin is a [Registration]: an ID, and a function that creates a
// [Validator] when a syncer starts. A platform's own program is the syncer's
// command with more registrations:
//
//	app.NewCommand(mine.Registration()).ExecuteContext(ctx)
//
// Plugins are only called if validation is enabled, with
// --enable-quota-validation. For each object of a kind that validators watch,
// the syncer then
//
//  1. locks the tenant with the validator's [Locker] and calls
//     [Validator.Validate], for one validator after the other in the order of
//     their IDs,
//  2. writes the copy, if all validators allow it,
//  3. reports the result to each [Accountant],
//  4. unlocks the tenant.
//
// Between a validator's answer and the write that it allows, no other copy of
// the tenant is written, and no tenant waits for another: the syncer validates
// one object of a tenant at a time, and the tenant's other objects wait without
// occupying a worker. A rejected object stays unchanged in the tenant, with an
// event and, for a pod, a condition that give the reason. It is retried by the
// patrol, and as soon as a validator calls [Environment.Retry].
//
// Objects of converted tenants are in the super cluster from the beginning: there
// an admission webhook of the syncer calls the validators, and the tenant's client
// gets their rejection as the response to its request. Step 2 is then the super
// cluster's, after step 4, and accountants get [ErrAwaited] as its result.
//
// A validator that panics, returns an error other than a [RejectionError], or
// does not answer in time has not allowed the write: by default the object is
// not written and is retried with backoff. Other tenants are not affected.
package plugins

import (
	"cmp"
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Registration describes a plugin before a syncer creates its validator.
type Registration struct {
	// ID identifies the plugin in the flag that selects plugins, in metrics and
	// in logs. It is a DNS label, such as quota.
	ID string
	// InitFn creates the plugin's validator. It is called once, before the
	// syncer connects to any cluster. Background work belongs in a runnable
	// (see [Validator]). The syncer exits with the error that it returns.
	InitFn func(Environment) (Validator, error)
	// Disable excludes the plugin, as if it were not registered, except that
	// selecting it by its ID is an error that says so.
	Disable bool
}

// Environment is what the syncer provides to a plugin.
type Environment struct {
	// Cache holds all VirtualClusters, the super cluster's classes (priority,
	// runtime, storage and similar classes), and of other kinds the objects of
	// the super cluster that belong to tenants ([TenantOf]). Its objects are shared and must
	// not be changed. Handlers of its informers must return at once, because
	// they delay all other handlers of the kind.
	//
	// Tenants decide how large their ConfigMaps, Secrets and
	// ResourceClaimTemplates are, so the syncer caches only their metadata.
	// Request a PartialObjectMetadata of such a kind to share that cache: its
	// labels and annotations identify the tenant.
	Cache cache.Cache
	// Client writes to the super cluster and reads from the cache. It has the
	// permissions of the syncer's service account; a plugin that needs more has
	// to bind a role of its own to that account.
	Client client.Client
	// Kinds are the built-in kinds that tenants declare. Their copies can be
	// validated.
	Kinds []Kind
	// Retry requeues the rejected objects of a tenant, by its cluster key,
	// after a change that may allow them. It returns at once.
	Retry func(tenant string)
	// Serves reports whether this syncer serves a tenant, by its cluster key:
	// each tenant is served by one of the replicas that share the tenants. A
	// plugin checks it before it writes a tenant's status.
	Serves func(tenant string) bool
	// Logger is the logger of the plugin.
	Logger logr.Logger
	// Registerer registers the plugin's metrics.
	Registerer prometheus.Registerer
}

// Kind is a built-in kind that tenants declare.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the resource of the kind.
	Resource schema.GroupResource
	// Object is an empty object of the type in the cache, which must not be
	// changed: a PartialObjectMetadata if the cache has only metadata.
	Object client.Object
}

// Tenant identifies the tenant of an object.
type Tenant struct {
	// Key is the cluster key, the prefix of the names of the tenant's
	// namespaces in the super cluster.
	Key string
	// Name, Namespace and UID are those of the VirtualCluster.
	Name, Namespace string
	UID             types.UID
}

// Request describes a write for a validator. Its objects belong to the syncer
// and must not be changed.
type Request struct {
	Tenant Tenant
	// Kind is the kind of the object.
	Kind schema.GroupVersionKind
	// Object is the copy to be written to the super cluster, with its names
	// there. That of a converted tenant has its UID, also on creation.
	Object client.Object
	// Was is the current copy; nil on creation.
	Was client.Object
}

// Validator decides whether copies of tenants' objects may be written to the
// super cluster. Its methods are called concurrently, except that Validate is
// called once at a time for each tenant.
//
// A validator with background work, such as following a cache, is also a
// sigs.k8s.io/controller-runtime/pkg/manager.Runnable: its Start is called when
// the syncer begins to work, in a goroutine that the syncer waits for on
// shutdown.
type Validator interface {
	// Name returns the name for messages, such as quota.
	Name() string
	// Kinds returns the kinds that it watches. Validate is not called for
	// others. Most limits concern pods, claims and services.
	Kinds() []schema.GroupKind
	// Validate returns nil if the copy may be written, a [RejectionError] if it
	// may not, and another error if it cannot decide. It is called before a
	// copy is created, and before the tenant's changes, other than to the
	// status, are written to one. It is not called for deletions. It returns
	// when ctx is done, which is soon.
	Validate(ctx context.Context, request Request) error
	// Locker returns the lock of a tenant, always the same one; nil if the
	// validator does not know the tenant, whose objects are then rejected.
	// [TenantLocks] implements it.
	Locker(tenant string) Locker
}

// Accountant is a [Validator] that accounts for what it has allowed. Caches lag
// behind writes, so a validator that only counts cached objects allows too much
// while many are created at once.
type Accountant interface {
	// Settled reports the result of a write that Validate has allowed, before
	// the tenant's lock is released. If err is nil, the request's object is the
	// super cluster's answer. [Undecided] reports whether a failed write may
	// have succeeded nevertheless.
	Settled(request Request, err error)
}

// TenantOf returns the key of the tenant that owns an object of the super
// cluster; empty if no tenant does. It is an annotation of a copy, and a label of an
// object of a converted tenant. The platform's own NetworkPolicies in a
// tenant's namespace are not the tenant's.
func TenantOf(super client.Object) string {
	if policy, ok := super.(*networkingv1.NetworkPolicy); ok && names.PlatformPolicy(policy.Name) {
		return ""
	}
	return cmp.Or(super.GetAnnotations()[names.Cluster], super.GetLabels()[names.Converted])
}
