package rules

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// set are rules, compiled. Nothing changes it once it is made. The nil set has no rules.
type set struct{ byKind map[schema.GroupKind][]*rule }

// rule is one rule, compiled.
type rule struct {
	name, message string
	condition     *expression.Condition
	err           error // why it did not compile
}

// kinds are those that rules can be about.
func kinds() map[tenancyv1alpha1.QuotaKind]schema.GroupKind {
	return map[tenancyv1alpha1.QuotaKind]schema.GroupKind{
		"Pod":                   {Kind: "Pod"},
		"PersistentVolumeClaim": {Kind: "PersistentVolumeClaim"},
		"Service":               {Kind: "Service"},
		"ConfigMap":             {Kind: "ConfigMap"},
		"Secret":                {Kind: "Secret"},
		"ServiceAccount":        {Kind: "ServiceAccount"},
		"Namespace":             {Kind: "Namespace"},
		"Ingress":               {Group: "networking.k8s.io", Kind: "Ingress"},
		"NetworkPolicy":         {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		"PodDisruptionBudget":   {Group: "policy", Kind: "PodDisruptionBudget"},
		"Endpoints":             {Kind: "Endpoints"},
		"EndpointSlice":         {Group: "discovery.k8s.io", Kind: "EndpointSlice"},
		"ResourceClaim":         {Group: "resource.k8s.io", Kind: "ResourceClaim"},
		"ResourceClaimTemplate": {Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"},
	}
}

// environment is what rules can name. All tenants share it.
var environment = sync.OnceValues(newEnvironment)

// Check says which of the rules that a field holds do not compile, and where they are wrong.
func Check(rules []tenancyv1alpha1.QuotaRule, at *field.Path) field.ErrorList {
	_, wrong := compile(rules, at)
	return wrong
}

// compile makes a set of the rules that a field holds, and says which do not compile, and where. Such a rule keeps its error, which
// stops what the rule is about.
func compile(rules []tenancyv1alpha1.QuotaRule, at *field.Path) (*set, field.ErrorList) {
	s := &set{byKind: map[schema.GroupKind][]*rule{}}
	var wrong field.ErrorList
	known := kinds()
	for i := range rules {
		one := &rule{name: rules[i].Name, message: rules[i].Message}
		one.condition, one.err = condition(rules[i].Expression)
		if one.err != nil {
			wrong = append(wrong, field.Invalid(at.Index(i).Child("expression"), field.OmitValueType{}, one.err.Error()))
		}
		for _, kind := range rules[i].Kinds {
			s.byKind[known[kind]] = append(s.byKind[known[kind]], one)
		}
	}
	return s, wrong
}

func condition(source string) (*expression.Condition, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return expression.CompileCondition(env, source)
}

// concerns says whether there are rules for a kind.
func (s *set) concerns(kind schema.GroupVersionKind) bool {
	return s != nil && len(s.byKind[kind.GroupKind()]) > 0
}

// check rejects what breaks a rule.
func (s *set) check(ctx context.Context, kind schema.GroupVersionKind, variables map[string]any, budget *expression.Budget) error {
	if s == nil {
		return nil
	}
	for _, one := range s.byKind[kind.GroupKind()] {
		if err := one.check(ctx, variables, budget); err != nil {
			return err
		}
	}
	return nil
}

func (r *rule) check(ctx context.Context, variables map[string]any, budget *expression.Budget) error {
	if r.err != nil {
		return fmt.Errorf("rule %s does not compile: %w", r.name, r.err)
	}
	holds, err := r.condition.Holds(ctx, variables, budget)
	switch {
	case err != nil:
		return fmt.Errorf("rule %s cannot be evaluated: %w", r.name, err)
	case !holds:
		return &plugins.RejectionError{Reason: reasonViolated, Message: r.message}
	}
	return nil
}
