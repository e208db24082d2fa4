// Package expressions compiles the CEL expressions of webhooks and policies of
// admission, as an apiserver does before it stores them.
package expressions

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// perObject is how much work an object without expressions is.
const perObject = 1 << 10

// Check returns what is wrong with the expressions of an object of a kind, and how
// much work it was to compile them; nothing for an object of another kind.
func Check(kind string, object map[string]any) (wrong field.ErrorList, work int, err error) {
	switch kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		// The expressions of both are in the same place.
		return checked(object, func(c *checker, o *admissionregistrationv1.ValidatingWebhookConfiguration) { c.webhooks(o) })
	case "ValidatingAdmissionPolicy":
		return checked(object, func(c *checker, o *admissionregistrationv1.ValidatingAdmissionPolicy) { c.validating(&o.Spec) })
	case "MutatingAdmissionPolicy":
		return checked(object, func(c *checker, o *admissionregistrationv1.MutatingAdmissionPolicy) { c.mutating(&o.Spec) })
	}
	return nil, 0, nil
}

func checked[T any](object map[string]any, check func(*checker, *T)) (wrong field.ErrorList, work int, err error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		return nil, perObject, err
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, perObject, fmt.Errorf("make a compiler of expressions: %w", err)
	}
	c := &checker{compiler: compiler}
	check(c, typed)
	return c.errs, perObject + min(c.all.Work(), expression.MaxWork), nil
}

// checker compiles the expressions of one object.
type checker struct {
	compiler *plugincel.CompositedCompiler
	all      expression.Estimate
	errs     field.ErrorList
}

// within reports whether the expressions are within the limit of work together with
// one more. The first one beyond it is an error.
func (c *checker) within(at *field.Path, add func(source string), source string) bool {
	before := c.all.Work()
	add(source)
	if before <= expression.MaxWork && c.all.Work() > expression.MaxWork {
		c.errs = append(c.errs, field.Forbidden(at, "to compile the expressions up to this one would be more work than it may be: "+
			"write fewer or simpler ones, or make several objects"))
	}
	return c.all.Work() <= expression.MaxWork
}

// declared are what expressions may use.
type declared = plugincel.OptionalVariableDeclarations

func (c *checker) expression(at *field.Path, accessor plugincel.ExpressionAccessor, may declared) {
	if c.within(at, c.all.Add, accessor.GetExpression()) {
		c.report(at, accessor, c.compiler.CompileCELExpression(accessor, may, environment.NewExpressions))
	}
}

func (c *checker) report(at *field.Path, accessor plugincel.ExpressionAccessor, result plugincel.CompilationResult) {
	if result.Error != nil {
		c.errs = append(c.errs, field.Invalid(at, accessor.GetExpression(), result.Error.Detail))
	}
}

func (c *checker) webhooks(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	for i, webhook := range configuration.Webhooks {
		c.conditions(field.NewPath("webhooks").Index(i), webhook.MatchConditions, declared{HasAuthorizer: true})
	}
}

func (c *checker) conditions(at *field.Path, conditions []admissionregistrationv1.MatchCondition, may declared) {
	for i, condition := range conditions {
		accessor := &matchconditions.MatchCondition{Name: condition.Name, Expression: condition.Expression}
		c.expression(at.Child("matchConditions").Index(i).Child("expression"), accessor, may)
	}
}

func (c *checker) validating(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	at, may := field.NewPath("spec"), declared{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	c.conditions(at, spec.MatchConditions, may)
	c.variables(at, spec.Variables, may)
	for i, validation := range spec.Validations {
		below := at.Child("validations").Index(i)
		c.expression(below.Child("expression"), &validating.ValidationCondition{Expression: validation.Expression}, may)
		if validation.MessageExpression != "" {
			c.expression(below.Child("messageExpression"),
				&validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression}, declared{HasParams: may.HasParams})
		}
	}
	for i, annotation := range spec.AuditAnnotations {
		c.expression(at.Child("auditAnnotations").Index(i).Child("valueExpression"),
			&validating.AuditAnnotationCondition{Key: annotation.Key, ValueExpression: annotation.ValueExpression}, may)
	}
}

func (c *checker) mutating(spec *admissionregistrationv1.MutatingAdmissionPolicySpec) {
	at, may := field.NewPath("spec"), declared{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	c.conditions(at, spec.MatchConditions, may)
	c.variables(at, spec.Variables, may)
	may.HasPatchTypes = true
	for i, mutation := range spec.Mutations {
		below := at.Child("mutations").Index(i)
		if mutation.ApplyConfiguration != nil {
			c.expression(below.Child("applyConfiguration", "expression"),
				&patch.ApplyConfigurationCondition{Expression: mutation.ApplyConfiguration.Expression}, may)
		}
		if mutation.JSONPatch != nil {
			c.expression(below.Child("jsonPatch", "expression"), &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, may)
		}
	}
}

// variables compiles variables, which those that follow may use.
func (c *checker) variables(at *field.Path, variables []admissionregistrationv1.Variable, may declared) {
	for i, variable := range variables {
		accessor := &validating.Variable{Name: variable.Name, Expression: variable.Expression}
		below := at.Child("variables").Index(i).Child("expression")
		if c.within(below, c.all.AddVariable, variable.Expression) {
			c.report(below, accessor, c.compiler.CompileAndStoreVariable(accessor, may, environment.NewExpressions))
		}
	}
}
