package hosted

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/resource"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

const (
	// workOfPolicy is what a policy takes beside its expressions.
	workOfPolicy = 2 * expression.Usual
	// workOfWebhook is what a webhook takes beside its conditions: about 25 KiB for
	// each request that it might be called for.
	workOfWebhook = expression.Usual / 2
)

// limitExpressions refuses objects whose expressions are too much work to compile:
// upstream compiles them to validate an object, which cannot be stopped, and keeps
// the programs. It follows whatever changes an object, and precedes validation.
type limitExpressions struct{}

// Handles implements admission.Interface.
func (limitExpressions) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// Admit implements admission.MutationInterface, and changes nothing.
func (limitExpressions) Admit(ctx context.Context, request admission.Attributes, _ admission.ObjectInterfaces) error {
	if request.GetSubresource() != "" || isPlatform(ctx) || isInternal(ctx) {
		return nil
	}
	work := workOf(request.GetObject())
	if work <= expression.MaxWork || work <= workOf(request.GetOldObject()) { // that of an object from before the limit
		return nil
	}
	return admission.NewForbidden(request, fmt.Errorf("to compile its expressions would be about %d times as much work as it may be: "+
		"write fewer or simpler ones, or divide them among several objects", work/expression.MaxWork+1))
}

// workOf returns how much work it is to compile the expressions of an object.
func workOf(object runtime.Object) int {
	all := &expression.Estimate{}
	switch o := object.(type) {
	case *apiextensions.CustomResourceDefinition:
		addDefinition(all, &o.Spec)
	case *admissionregistration.ValidatingAdmissionPolicy:
		addValidatingPolicy(all, &o.Spec)
	case *admissionregistration.MutatingAdmissionPolicy:
		addMutatingPolicy(all, &o.Spec)
	case *admissionregistration.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			addWebhook(all, o.Webhooks[i].MatchConditions)
		}
	case *admissionregistration.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			addWebhook(all, o.Webhooks[i].MatchConditions)
		}
	case *resource.DeviceClass:
		addSelectors(all, o.Spec.Selectors)
	case *resource.ResourceClaim:
		addDevices(all, &o.Spec.Devices)
	case *resource.ResourceClaimTemplate:
		addDevices(all, &o.Spec.Spec.Devices)
	}
	return all.Work()
}

func addWebhook(all *expression.Estimate, conditions []admissionregistration.MatchCondition) {
	all.AddObject(workOfWebhook)
	addConditions(all, conditions)
}

func addValidatingPolicy(all *expression.Estimate, spec *admissionregistration.ValidatingAdmissionPolicySpec) {
	all.AddObject(workOfPolicy)
	addVariables(all, spec.Variables)
	addConditions(all, spec.MatchConditions)
	for _, validation := range spec.Validations {
		all.Add(validation.Expression)
		addOptional(all, validation.MessageExpression)
	}
	for _, annotation := range spec.AuditAnnotations {
		all.Add(annotation.ValueExpression)
	}
}

func addMutatingPolicy(all *expression.Estimate, spec *admissionregistration.MutatingAdmissionPolicySpec) {
	all.AddObject(workOfPolicy)
	addVariables(all, spec.Variables)
	addConditions(all, spec.MatchConditions)
	for _, mutation := range spec.Mutations {
		if mutation.ApplyConfiguration != nil {
			all.Add(mutation.ApplyConfiguration.Expression)
		}
		if mutation.JSONPatch != nil {
			all.Add(mutation.JSONPatch.Expression)
		}
	}
}

func addVariables(all *expression.Estimate, variables []admissionregistration.Variable) {
	for _, variable := range variables {
		all.AddVariable(variable.Expression)
	}
}

func addConditions(all *expression.Estimate, conditions []admissionregistration.MatchCondition) {
	for _, condition := range conditions {
		all.Add(condition.Expression)
	}
}

// addOptional adds an expression, unless there is none.
func addOptional(all *expression.Estimate, source string) {
	if source != "" {
		all.Add(source)
	}
}

func addDevices(all *expression.Estimate, devices *resource.DeviceClaim) {
	for _, request := range devices.Requests {
		if request.Exactly != nil {
			addSelectors(all, request.Exactly.Selectors)
		}
		for _, alternative := range request.FirstAvailable {
			addSelectors(all, alternative.Selectors)
		}
	}
}

func addSelectors(all *expression.Estimate, selectors []resource.DeviceSelector) {
	for _, selector := range selectors {
		if selector.CEL != nil {
			all.Add(selector.CEL.Expression)
		}
	}
}

func addDefinition(all *expression.Estimate, spec *apiextensions.CustomResourceDefinitionSpec) {
	add := func(validation *apiextensions.CustomResourceValidation) {
		if validation != nil {
			addSchema(all, validation.OpenAPIV3Schema)
		}
	}
	add(spec.Validation)
	for i := range spec.Versions {
		add(spec.Versions[i].Schema)
	}
}

// addSchema adds the rules and the patterns of a schema, and returns how many
// schemas it consists of.
func addSchema(all *expression.Estimate, schema *apiextensions.JSONSchemaProps) (schemas int) {
	if schema == nil {
		return 0
	}
	schemas = 1
	for _, inner := range within(schema) {
		schemas += addSchema(all, inner)
	}
	for _, rule := range schema.XValidations {
		all.Add(rule.Rule)
		addOptional(all, rule.MessageExpression)
	}
	if len(schema.XValidations) > 0 {
		all.AddTypes(schemas)
	}
	all.AddPattern(schema.Pattern)
	return schemas
}
