// Package plugins is the contract between the syncer and the rules that a platform adds to it: validators, which say whether
// what a tenant declares may go down to the super cluster.
//
// A plugin is a [Registration]: an ID, and a function that makes a [Validator] when a syncer starts. A program of a platform's own
// is the syncer's command with registrations added:
//
//	app.NewCommand(mine.Registration()).ExecuteContext(ctx)
//
// Nothing of a plugin is called unless validation is turned on, with --enable-quota-validation. Then, for each object of a kind
// that validators watch, the syncer
//
//  1. locks the tenant with the validator's [Locker] and asks it whether the copy may be written ([Validator.Validate]), one
//     validator after the other in the order of their IDs,
//  2. writes the copy, if all agree,
//  3. tells those who keep count how that ended ([Accountant]),
//  4. unlocks the tenant.
//
// So nothing of one tenant is written between an answer and the write that it was given for, and no tenant waits for another: the syncer
// asks about one object of a tenant at a time, and those that come meanwhile wait without a worker. What
// is not allowed stays in the tenant as it is, with an event and, for a pod, a condition that give the reason. It is tried
// again when the patrol comes round, and at once when a validator calls [Environment.Retry].
//
// A validator that panics, returns an error that is no [RejectionError], or does not answer in time has not agreed: by default nothing
// is written then, and the object is tried again with backoff. Other tenants go on.
package plugins

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Registration is a plugin, before a syncer has made it.
type Registration struct {
	// ID names the plugin, in the flag that chooses plugins, in metrics and in logs: a DNS label, such as quota.
	ID string
	// InitFn makes the plugin's validator, once, before the syncer has connected to anything. Work is a runnable's (see
	// [Validator]). An error ends the syncer with that error.
	InitFn func(Environment) (Validator, error)
	// Disable keeps the plugin from being loaded. It is as if it were not registered, but for the error that names it when
	// somebody asks for it.
	Disable bool
}

// Environment is what a plugin may use of its syncer.
type Environment struct {
	// Cache holds all VirtualClusters, the super cluster's classes (of priorities, runtimes, storage and the like), and of other kinds
	// those objects of the super cluster that belong to tenants. Its objects are shared: nobody may change them. A handler of one
	// of its informers holds up what else hears of the kind, so it returns at once.
	//
	// Tenants decide how large their ConfigMaps, Secrets and ResourceClaimTemplates are, so the syncer itself holds only metadata of
	// them. Ask for a PartialObjectMetadata of such a kind to share that: it has the labels and annotations that say whose copy it is.
	Cache cache.Cache
	// Client writes to the super cluster and reads from the cache. It has the rights of the syncer's service account; what else a
	// plugin needs, a role of its own has to give to that account.
	Client client.Client
	// Retry has what was rejected of a tenant, by its key, tried again: something has changed that may let it through. It
	// returns at once.
	Retry func(tenant string)
	// Serves says whether this syncer serves a tenant, by its key: of several replicas that share the tenants, one does. Whoever
	// writes something about a tenant asks before.
	Serves func(tenant string) bool
	// Logger is the plugin's own.
	Logger logr.Logger
	// Registerer is where the plugin's metrics go.
	Registerer prometheus.Registerer
}

// Tenant is who declares an object.
type Tenant struct {
	// Key is the cluster key, with which the names of the tenant's namespaces in the super cluster begin.
	Key string
	// Name, Namespace and UID are the VirtualCluster's.
	Name, Namespace string
	UID             types.UID
}

// Request is one write that a validator is asked about. Its objects are the syncer's: nobody may change them.
type Request struct {
	Tenant Tenant
	// Kind is the kind of the object.
	Kind schema.GroupVersionKind
	// Object is the copy as it would be written to the super cluster, with the super cluster's names.
	Object client.Object
	// Was is the copy as it is; nil if there is none yet.
	Was client.Object
}

// Validator says whether copies of tenants' objects may be written to the super cluster. Its methods are called by many
// goroutines at a time, but Validate by one at a time for each tenant.
//
// A validator that has to work besides being asked, such as following a cache, is also a
// sigs.k8s.io/controller-runtime/pkg/manager.Runnable: its Start is called when the syncer begins to work, in a goroutine that
// the syncer waits for when it ends.
type Validator interface {
	// Name is what people call it in messages, such as quota.
	Name() string
	// Kinds are the kinds that it watches. It is asked about no others. Pods, claims and services are those that most
	// limits are about.
	Kinds() []schema.GroupKind
	// Validate returns nil if the copy may be written, a [RejectionError] if not, and another error if it cannot tell. It is called
	// before a copy is made, and before one is changed by what the tenant declares, other than in its status. A tenant's deletions
	// are never asked about. It ends when the context does, which is soon.
	Validate(ctx context.Context, request Request) error
	// Locker is the lock of a tenant, always the same one; nil if the validator knows no such tenant, whose objects are
	// refused then. [TenantLocks] makes them.
	Locker(tenant string) Locker
}

// Accountant is a [Validator] that keeps count of what it has allowed. The caches lag behind the writes, and whoever counts by the
// caches alone counts too little while many objects are made at once.
type Accountant interface {
	// Settled tells how the write ended that Validate has allowed, before the tenant's lock is given back. Without an error, the
	// request's object is what the super cluster answered. [Undecided] says whether what failed may have been done all the same.
	Settled(request Request, err error)
}

// TenantOf is the key of the tenant that an object of the super cluster is a copy for; empty if it is nobody's.
func TenantOf(super client.Object) string { return super.GetAnnotations()[names.Cluster] }
