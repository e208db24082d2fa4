package rules

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// set is a set of compiled rules. It is immutable. The nil set has no rules.
type set struct {
	byKind map[tenancyv1alpha1.QuotaKind][]*rule
}

// rule is a compiled rule.
type rule struct {
	name, message string
	condition     *expression.Condition
	err           error // why it did not compile
}

// environment has the names that rules can use. All tenants share it.
var environment = sync.OnceValues(newEnvironment)

// Check returns an error for each rule of a field that does not compile, with
// the position in the rule.
func Check(rules []tenancyv1alpha1.QuotaRule, at *field.Path) field.ErrorList {
	_, wrong := compile(rules, at)
	return wrong
}

// compile compiles the rules of a field, and returns an error for each rule
// that does not compile. Such a rule rejects all objects of its kinds.
func compile(rules []tenancyv1alpha1.QuotaRule, at *field.Path) (*set, field.ErrorList) {
	s := &set{byKind: map[tenancyv1alpha1.QuotaKind][]*rule{}}
	var wrong field.ErrorList
	for i := range rules {
		one := &rule{name: rules[i].Name, message: rules[i].Message}
		one.condition, one.err = condition(rules[i].Expression)
		if one.err != nil {
			wrong = append(wrong, field.Invalid(at.Index(i).Child("expression"), field.OmitValueType{}, one.err.Error()))
		}
		for _, kind := range rules[i].Kinds {
			s.byKind[kind] = append(s.byKind[kind], one)
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

// concerns reports whether there are rules for a kind.
func (s *set) concerns(kind tenancyv1alpha1.QuotaKind) bool {
	return s != nil && len(s.byKind[kind]) > 0
}

// check rejects an object that violates a rule.
func (s *set) check(ctx context.Context, kind tenancyv1alpha1.QuotaKind, variables map[string]any, budget *expression.Budget) error {
	if s == nil {
		return nil
	}
	for _, one := range s.byKind[kind] {
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
