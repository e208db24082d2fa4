// Package typecheck writes the status of the ValidatingAdmissionPolicies of
// converted tenants: what upstream's type checker says of their expressions, by the
// schemas that the tenant's own API has.
package typecheck

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// Upstream's checker compiles each expression with all variables for each kind that
// a policy matches, and cannot be stopped. These are the limits of one policy; they
// count and do not measure, so that all replicas of the gateway write the same.
const (
	// maxResources is how many resources the rules may name: the checker looks up
	// each combination of group, version and resource.
	maxResources = 1000
	// maxKinds is how many kinds are checked. The checker itself stops at 10 in a
	// rule.
	maxKinds = 16
	// maxWork is how much work there is for one policy, as [expression.Work] counts it.
	// To build an environment for an expression and a kind is perEnvironment.
	maxWork        = 8 << 20
	perEnvironment = 4 << 10
	// maxWarning and maxWarnings bound what is written, in bytes.
	maxWarning  = 4 << 10
	maxWarnings = 64 << 10
)

// check returns the warnings about the expressions of a policy: those of upstream,
// within the limits. The last warning says what was not checked.
func check(policy *admissionregistrationv1.ValidatingAdmissionPolicy, kinds meta.ResettableRESTMapper, schemas resolver.SchemaResolver) (
	warnings []admissionregistrationv1.ExpressionWarning,
) {
	root := field.NewPath("spec")
	if resources(policy) > maxResources {
		return []admissionregistrationv1.ExpressionWarning{unchecked(root.Child("matchConstraints", "resourceRules"),
			fmt.Sprintf("the rules name more than %d resources", maxResources))}
	}
	few := newFewKinds(kinds)
	checker := &validating.TypeChecker{SchemaResolver: schemas, RestMapper: few}
	types := checker.CreateContext(policy)
	work, written, environment := 0, 0, perEnvironment+variablesOf(policy)
	for _, each := range expressionsOf(root.Child("validations"), policy.Spec.Validations) {
		if work += len(few.found) * (environment + expression.Work(each.expression)); work > maxWork {
			return append(warnings, unchecked(each.at, "the expressions, the variables and the kinds are too much work"))
		}
		results := checker.CheckExpression(types, each.expression)
		if len(results) == 0 {
			continue
		}
		warning := admissionregistrationv1.ExpressionWarning{FieldRef: each.at.String(), Warning: shortened(results.String())}
		if written += len(warning.Warning); written > maxWarnings {
			return append(warnings, unchecked(each.at, "there are too many warnings"))
		}
		warnings = append(warnings, warning)
	}
	return warnings
}

// unchecked is the warning about an expression that is not checked, and the last
// one.
func unchecked(at *field.Path, reason string) admissionregistrationv1.ExpressionWarning {
	return admissionregistrationv1.ExpressionWarning{
		FieldRef: at.String(), Warning: "types are not checked from here on: " + reason,
	}
}

// located is an expression and where it is in a policy.
type located struct {
	at         *field.Path
	expression string
}

// expressionsOf returns the expressions that upstream checks, in its order.
func expressionsOf(at *field.Path, validations []admissionregistrationv1.Validation) []located {
	var all []located
	for i, validation := range validations {
		all = append(all, located{at.Index(i).Child("expression"), validation.Expression})
		if validation.MessageExpression != "" {
			all = append(all, located{at.Index(i).Child("messageExpression"), validation.MessageExpression})
		}
	}
	return all
}

// variablesOf returns how much work the variables of a policy are.
func variablesOf(policy *admissionregistrationv1.ValidatingAdmissionPolicy) int {
	work := 0
	for _, variable := range policy.Spec.Variables {
		work += expression.Work(variable.Expression)
	}
	return work
}

// resources returns how many resources the rules of a policy name.
func resources(policy *admissionregistrationv1.ValidatingAdmissionPolicy) int {
	if policy.Spec.MatchConstraints == nil {
		return 0
	}
	named := 0
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		named += max(1, len(rule.APIGroups)*len(rule.APIVersions)*len(rule.Resources))
	}
	return named
}

// shortened returns a text that is not too long for the status.
func shortened(text string) string {
	if len(text) <= maxWarning {
		return text
	}
	return strings.ToValidUTF8(text[:maxWarning], "") + "…"
}

// fewKinds finds a limited number of kinds.
type fewKinds struct {
	meta.ResettableRESTMapper

	found sets.Set[schema.GroupVersionKind]
}

func newFewKinds(kinds meta.ResettableRESTMapper) *fewKinds {
	return &fewKinds{ResettableRESTMapper: kinds, found: sets.Set[schema.GroupVersionKind]{}}
}

// KindsFor implements meta.RESTMapper.
func (f *fewKinds) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	all, err := f.ResettableRESTMapper.KindsFor(resource)
	var kept []schema.GroupVersionKind
	for _, kind := range all {
		if !f.found.Has(kind) && len(f.found) == maxKinds {
			continue
		}
		f.found.Insert(kind)
		kept = append(kept, kind)
	}
	return kept, err
}
