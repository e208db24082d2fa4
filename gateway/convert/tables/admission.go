package tables

import (
	"cmp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// number is the type of a column with a number.
const number = "integer"

var (
	webhookColumns = []metav1.TableColumnDefinition{
		nameColumn,
		{Name: "Webhooks", Type: number, Description: "Webhooks indicates the number of webhooks registered in this configuration"},
		ageColumn,
	}
	policyColumns = policyColumnsWith("Validations",
		"Validations indicates the number of validation rules defined in this configuration")
	mutatingPolicyColumns  = policyColumnsWith("Mutations", "Mutations indicates the number of mutations rules defined in this configuration")
	admissionPolicyBinding = []metav1.TableColumnDefinition{
		nameColumn,
		{Name: "PolicyName", Type: text, Description: "PolicyName indicates the policy definition which the policy binding binded to"},
		{Name: "ParamRef", Type: text, Description: "ParamRef indicates the param resource which sets the configuration param"},
		ageColumn,
	}
)

func policyColumnsWith(counted, description string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn,
		{Name: counted, Type: number, Description: description},
		{Name: "ParamKind", Type: text, Description: "ParamKind specifies the kind of resources used to parameterize this policy"},
		ageColumn,
	}
}

// unset is the cell of a reference that there is not.
const unset = "<unset>"

// webhookCells prints configurations of both kinds: they have the same list.
func webhookCells(object map[string]any) ([]any, error) {
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &configuration); err != nil {
		return nil, err
	}
	return []any{configuration.Name, int64(len(configuration.Webhooks)), age(configuration.ObjectMeta)}, nil
}

func validatingPolicyCells(object map[string]any) ([]any, error) {
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &policy); err != nil {
		return nil, err
	}
	return []any{policy.Name, int64(len(policy.Spec.Validations)), paramKind(policy.Spec.ParamKind), age(policy.ObjectMeta)}, nil
}

func mutatingPolicyCells(object map[string]any) ([]any, error) {
	var policy admissionregistrationv1.MutatingAdmissionPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &policy); err != nil {
		return nil, err
	}
	return []any{policy.Name, int64(len(policy.Spec.Mutations)), paramKind(policy.Spec.ParamKind), age(policy.ObjectMeta)}, nil
}

func paramKind(kind *admissionregistrationv1.ParamKind) string {
	if kind == nil {
		return unset
	}
	return kind.APIVersion + "/" + kind.Kind
}

// policyBindingCells prints bindings of both kinds of policies.
func policyBindingCells(object map[string]any) ([]any, error) {
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &binding); err != nil {
		return nil, err
	}
	params := unset
	if ref := binding.Spec.ParamRef; ref != nil {
		params = strings.TrimPrefix(ref.Namespace+"/"+cmp.Or(ref.Name, "*"), "/")
	}
	return []any{binding.Name, binding.Spec.PolicyName, params, age(binding.ObjectMeta)}, nil
}
