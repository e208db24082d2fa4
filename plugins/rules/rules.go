// Package rules is the validator of spec.quota.rules: validation rules (CEL)
// for the copies of a tenant's objects.
package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// ID is the ID of the plugin.
const ID = "rules"

// reasonViolated is the reason of a rejection.
const reasonViolated = "RuleViolated"

// Usage returns the usage of a tenant without the object of a request, and its
// limits.
type Usage func(plugins.Request) (used, hard corev1.ResourceList, err error)

// Rules is the validator.
type Rules struct {
	env   plugins.Environment
	usage Usage
	// kinds are the kinds that rules can be about, by the names that rules have
	// for them.
	kinds map[schema.GroupKind]tenancyv1alpha1.QuotaKind
	// common are the rules of all tenants.
	common *set
	locks  plugins.TenantLocks
	// changed are the VirtualClusters whose condition may differ.
	changed workqueue.TypedRateLimitingInterface[client.ObjectKey]

	mu sync.Mutex
	// own are the rules of each VirtualCluster.
	own map[types.UID]compiled
}

// compiled is a list of rules with its compiled form.
type compiled struct {
	from []tenancyv1alpha1.QuotaRule
	set  *set
	// wrong has an error for each rule that does not compile.
	wrong field.ErrorList
}

// Registration returns the plugin. The rules in the file, if it is not empty,
// apply to all tenants.
func Registration(usage Usage, file string) plugins.Registration {
	return plugins.Registration{ID: ID, InitFn: func(env plugins.Environment) (plugins.Validator, error) {
		common, err := read(file, env.Kinds)
		if err != nil {
			return nil, fmt.Errorf("read the rules of all tenants: %w", err)
		}
		return newRules(env, usage, common), nil
	}}
}

func newRules(env plugins.Environment, usage Usage, common *set) *Rules {
	kinds := make(map[schema.GroupKind]tenancyv1alpha1.QuotaKind, len(env.Kinds))
	for _, k := range env.Kinds {
		kinds[k.GroupKind()] = tenancyv1alpha1.QuotaKind(k.Kind)
	}
	return &Rules{
		env:    env,
		usage:  usage,
		kinds:  kinds,
		common: common,
		changed: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](retryFirst, retryMost)),
		own: map[types.UID]compiled{},
	}
}

// Name implements plugins.Validator.
func (*Rules) Name() string { return ID }

// Kinds returns the kinds that rules can be about.
func (r *Rules) Kinds() []schema.GroupKind { return slices.Collect(maps.Keys(r.kinds)) }

// Locker returns the lock of a tenant.
func (r *Rules) Locker(tenant string) plugins.Locker { return r.locks.Of(tenant) }

// Validate rejects a copy that violates a rule. The rules of all tenants are
// evaluated before the tenant's own.
func (r *Rules) Validate(ctx context.Context, request plugins.Request) error {
	vc, err := r.virtualCluster(ctx, request.Tenant)
	if err != nil {
		return err
	}
	own, kind := r.ownOf(vc).set, r.kinds[request.Kind.GroupKind()]
	if !r.common.concerns(kind) && !own.concerns(kind) {
		return nil
	}
	variables := r.variables(request, vc)
	budget := &expression.Budget{}
	for _, s := range []*set{r.common, own} {
		if err := s.check(ctx, kind, variables, budget); err != nil {
			return err
		}
	}
	return nil
}

// virtualCluster returns the VirtualCluster of a tenant from the cache.
func (r *Rules) virtualCluster(ctx context.Context, tenant plugins.Tenant) (*tenancyv1alpha1.VirtualCluster, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	key := client.ObjectKey{Namespace: tenant.Namespace, Name: tenant.Name}
	if err := r.env.Client.Get(ctx, key, vc, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read the rules of VirtualCluster %s: %w", key, err)
	}
	if vc.UID != tenant.UID {
		return nil, fmt.Errorf("VirtualCluster %s does not have the UID of tenant %s", key, tenant.Key)
	}
	return vc, nil
}

// ownOf returns the compiled rules of a VirtualCluster. Unchanged rules are not
// compiled again.
func (r *Rules) ownOf(vc *tenancyv1alpha1.VirtualCluster) compiled {
	from := rulesOf(vc)
	if len(from) == 0 {
		return compiled{}
	}
	r.mu.Lock()
	own, known := r.own[vc.UID]
	r.mu.Unlock()
	if known && equality.Semantic.DeepEqual(own.from, from) {
		return own
	}
	own = compiled{from: from}
	own.set, own.wrong = compile(from, field.NewPath("spec", "quota", "rules"))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[vc.UID] = own
	return own
}

// forget deletes the state of a VirtualCluster that was deleted.
func (r *Rules) forget(vc *tenancyv1alpha1.VirtualCluster) {
	r.mu.Lock()
	delete(r.own, vc.UID)
	r.mu.Unlock()
	r.locks.Forget(vc.Status.ClusterNamespace)
}
