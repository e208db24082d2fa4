package expressions_test

import (
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/expressions"
)

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, object, at string
	}{
		"a webhook": {"ValidatingWebhookConfiguration",
			`{"webhooks":[{"matchConditions":[{"name":"a","expression":"object.metadata.name == 'x' && authorizer.requestResource.check('get').allowed()"}]}]}`, ""},
		"a webhook that does not compile": {"MutatingWebhookConfiguration",
			`{"webhooks":[{"matchConditions":[{"name":"a","expression":"object.metadata ="}]}]}`, "webhooks[0].matchConditions[0].expression"},
		"one that is no condition": {"MutatingWebhookConfiguration",
			`{"webhooks":[{"matchConditions":[{"name":"a","expression":"'text'"}]}]}`, "webhooks[0].matchConditions[0].expression"},
		"variables": {"ValidatingAdmissionPolicy",
			`{"spec":{"variables":[{"name":"a","expression":"1"},{"name":"b","expression":"variables.a + 1"}],"validations":[{"expression":"variables.b == 2"}]}}`, ""},
		"a variable that there is not": {"ValidatingAdmissionPolicy",
			`{"spec":{"validations":[{"expression":"variables.b == 2"}]}}`, "spec.validations[0].expression"},
		"parameters": {"ValidatingAdmissionPolicy",
			`{"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params.data.a == 'b'","messageExpression":"string(params.data.c)"}]}}`, ""},
		"parameters of no kind": {"ValidatingAdmissionPolicy",
			`{"spec":{"validations":[{"expression":"params.data.a == 'b'"}]}}`, "spec.validations[0].expression"},
		"a message of another type": {"ValidatingAdmissionPolicy",
			`{"spec":{"validations":[{"expression":"true","messageExpression":"1"}]}}`, "spec.validations[0].messageExpression"},
		"an audit annotation": {"ValidatingAdmissionPolicy",
			`{"spec":{"auditAnnotations":[{"key":"a","valueExpression":"b"}]}}`, "spec.auditAnnotations[0].valueExpression"},
		"a mutation": {"MutatingAdmissionPolicy",
			`{"spec":{"mutations":[{"applyConfiguration":{"expression":"Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}},
			{"jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/a'}]"}}]}}`, ""},
		"a mutation that is none": {"MutatingAdmissionPolicy",
			`{"spec":{"mutations":[{"applyConfiguration":{"expression":"[]"}}]}}`, "spec.mutations[0].applyConfiguration.expression"},
		"a patch that is none": {"MutatingAdmissionPolicy",
			`{"spec":{"mutations":[{"jsonPatch":{"expression":"Object{}"}}]}}`, "spec.mutations[0].jsonPatch.expression"},
		"a binding": {"ValidatingAdmissionPolicyBinding", `{}`, ""},
		// The first one that is too much is reported, and none after it.
		"a long expression": {"ValidatingAdmissionPolicy",
			`{"spec":{"validations":[{"expression":"true"},{"expression":"` + long(3000) + `"},{"expression":"1"}]}}`, "spec.validations[1].expression"},
		"a long variable": {"ValidatingAdmissionPolicy",
			`{"spec":{"variables":[{"name":"a","expression":"` + long(3000) + `"}],"validations":[{"expression":"1"}]}}`, "spec.variables[0].expression"},
		"long expressions together": {"ValidatingWebhookConfiguration",
			`{"webhooks":[{"matchConditions":[{"name":"a","expression":"` + long(1500) + `"},{"name":"b","expression":"` + long(1500) + `"},{"name":"c"}]}]}`,
			"webhooks[0].matchConditions[1].expression"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := document.Parse([]byte(tt.object))
			if err != nil {
				t.Fatal(err)
			}
			errs, _, err := expressions.Check(tt.kind, object)
			if err != nil {
				t.Fatal(err)
			}
			var at []string
			for _, each := range errs {
				at = append(at, each.Field)
			}
			if strings.Join(at, " ") != tt.at {
				t.Errorf("errors at %q, want %q: %v", at, tt.at, errs)
			}
		})
	}
}

// long returns a condition that compares so often.
func long(comparisons int) string {
	return strings.Repeat("1==1||", comparisons) + "true"
}
