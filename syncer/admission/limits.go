package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
	"github.com/virtualcluster/virtualcluster/syncer/converted"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/limits"
)

// limiter is the validator of spec.policy.limits of converted tenants. Those of
// other tenants limit copies.
type limiter struct {
	locks plugins.TenantLocks
	kinds map[schema.GroupKind]*kinds.Kind
	most  limits.Limits
	usage rules.Usage
	reads client.Reader
}

// Limits returns the validator of the numbers of objects that converted tenants
// have, of the kinds in a table, by limits that spec.policy.limits overrides. It
// gets the usage of tenants from the validator of quotas.
func Limits(table []*kinds.Kind, most limits.Limits, usage rules.Usage) plugins.Registration {
	l := &limiter{kinds: map[schema.GroupKind]*kinds.Kind{}, most: most, usage: usage}
	for _, k := range table {
		for _, kind := range converted.Kinds() {
			if k.GVK.GroupKind() == kind {
				l.kinds[kind] = k
			}
		}
	}
	return plugins.Registration{ID: "limits", InitFn: func(env plugins.Environment) (plugins.Validator, error) {
		l.reads = env.Client
		return l, nil
	}}
}

// Name implements plugins.Validator.
func (*limiter) Name() string { return "limits" }

// Kinds implements plugins.Validator.
func (*limiter) Kinds() []schema.GroupKind { return converted.Kinds() }

// Locker implements plugins.Validator.
func (l *limiter) Locker(tenant string) plugins.Locker { return l.locks.Of(tenant) }

// Validate rejects an object that would exceed a limit.
func (l *limiter) Validate(ctx context.Context, r plugins.Request) error {
	k := l.kinds[r.Kind.GroupKind()]
	if k == nil || r.Object.GetLabels()[names.Converted] == "" {
		return nil
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	key := client.ObjectKey{Namespace: r.Tenant.Namespace, Name: r.Tenant.Name}
	if err := l.reads.Get(ctx, key, vc, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("read the limits of VirtualCluster %s: %w", key, err)
	}
	by := []limits.Limits{l.most}
	if vc.Spec.Policy != nil {
		by = []limits.Limits{vc.Spec.Policy.Limits, l.most}
	}
	used, _, err := l.usage(r)
	if err != nil {
		return err
	}
	return check(k, r, used, by...)
}

// check rejects an object of which a limited resource grows beyond its limit.
func check(k *kinds.Kind, r plugins.Request, used corev1.ResourceList, by ...limits.Limits) error {
	before := k.Amounts(r.Was)
	for resource, amount := range k.Amounts(r.Object) {
		most, limited := limits.Most(k, resource, by...)
		if _, _, inNamespace := k.MaxAmount(resource); !limited || inNamespace || amount <= before[resource] {
			continue
		}
		counted := corev1.ResourceName(resource)
		if resource == k.Resource {
			counted = corev1.ResourceName("count/" + k.GroupResource().String())
		}
		has := used[counted]
		if has.Value()+amount > most {
			return &plugins.RejectionError{
				Reason: limits.ReasonLimited, Message: fmt.Sprintf("no more than %d %s are allowed for this cluster", most, resource),
			}
		}
	}
	return nil
}
