package typecheck

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// gears have two fields, in some versions.
type gears struct{ *meta.DefaultRESTMapper }

func newGears(versions int) gears {
	m := gears{meta.NewDefaultRESTMapper(nil)}
	for i := range versions {
		m.Add(schema.GroupVersionKind{Group: "example.com", Version: fmt.Sprint("v", i+1), Kind: "Gear"}, meta.RESTScopeNamespace)
	}
	return m
}

// Reset implements meta.ResettableRESTMapper.
func (gears) Reset() {}

// ResolveSchema implements resolver.SchemaResolver.
func (gears) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if kind.Kind != "Gear" {
		return nil, resolver.ErrSchemaNotFound
	}
	gear := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	return gear.SetProperty("teeth", *spec.Int64Property()).SetProperty("color", *spec.StringProperty()), nil
}

func policyFor(versions int, expressions ...string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	rule := admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, Resources: []string{"gears"}}
	for i := range versions {
		rule.APIVersions = append(rule.APIVersions, fmt.Sprint("v", i+1))
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
		{RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: rule}},
	}}
	for _, expression := range expressions {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionregistrationv1.Validation{Expression: expression})
	}
	return policy
}

func TestCheck(t *testing.T) {
	long := "object.teeth > 0 " + strings.Repeat("||1==1 ", 8000)
	for name, tt := range map[string]struct {
		policy *admissionregistrationv1.ValidatingAdmissionPolicy
		change func(*admissionregistrationv1.ValidatingAdmissionPolicySpec)
		want   []string
	}{
		"right":      {policy: policyFor(1, "object.teeth > 3")},
		"misspelled": {policy: policyFor(1, "object.teeth > 3", "object.tooth > 3"), want: []string{"spec.validations[1].expression: undefined field 'tooth'"}},
		"a wrong type": {
			policy: policyFor(1, "object.color > 3"), want: []string{"spec.validations[0].expression: found no matching overload for '_>_'"},
		},
		"a message": {
			policy: policyFor(1, "true"), want: []string{"spec.validations[0].messageExpression: undefined field 'colour'"},
			change: func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.Validations[0].MessageExpression = "object.colour"
			},
		},
		"a variable": {
			policy: policyFor(1, "variables.a > 3"), want: []string{"spec.validations[0].expression: found no matching overload for '_>_'"},
			change: func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: "object.color"}}
			},
		},
		"parameters": {
			policy: policyFor(1, "params.tooth > 3"), want: []string{"spec.validations[0].expression: undefined field 'tooth'"},
			change: func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "Gear"}
			},
		},
		"no such kind": {
			policy: policyFor(1, "object.tooth > 3"),
			change: func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.MatchConstraints.ResourceRules[0].Resources = []string{"wheels"}
			},
		},
		"no such kind, and long": {policy: policyFor(0, long)},
		"no rules": {
			policy: policyFor(0, long),
			change: func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) { s.MatchConstraints = nil },
		},
		"too long": {
			policy: policyFor(1, "object.tooth > 3", long, "object.tooth > 3"), want: []string{
				"spec.validations[0].expression: undefined field 'tooth'", "spec.validations[1].expression: types are not checked from here on",
			},
		},
		"many resources": {
			policy: policyFor(maxResources+1, "object.tooth > 3"), want: []string{"spec.matchConstraints.resourceRules: types are not checked from here on"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(&tt.policy.Spec)
			}
			kinds := newGears(2)
			warnings := check(tt.policy, kinds, kinds)
			if len(warnings) != len(tt.want) {
				t.Fatalf("warnings %v, want %q", warnings, tt.want)
			}
			for i, want := range tt.want {
				if at, text, _ := strings.Cut(want, ": "); warnings[i].FieldRef != at || !strings.Contains(warnings[i].Warning, text) {
					t.Errorf("warning %v, want %q", warnings[i], want)
				}
			}
		})
	}
}

// TestLimits: what is compiled and what is written for a policy is limited, also
// over many expressions and kinds.
func TestLimits(t *testing.T) {
	kinds := newGears(20)
	fields := strings.TrimSuffix(strings.Repeat("object.tööth+", 300), "+") + " > 3"
	many := slices.Repeat([]string{"true"}, 5000)
	for name, policy := range map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{
		"many expressions": policyFor(1, many...),
		"many kinds":       policyFor(20, many[:500]...),
		"many variables":   withVariables(policyFor(1, many[:100]...), 10_000),
		"many warnings":    policyFor(1, slices.Repeat([]string{fields}, 30)...),
	} {
		t.Run(name, func(t *testing.T) {
			warnings, written := check(policy, kinds, kinds), 0
			for _, warning := range warnings {
				written += len(warning.Warning)
				if !utf8.ValidString(warning.Warning) {
					t.Errorf("the warning is no text: %q", warning.Warning)
				}
			}
			if len(warnings) == 0 || !strings.Contains(warnings[len(warnings)-1].Warning, "not checked from here on") {
				t.Errorf("everything was checked, with %d warnings", len(warnings))
			}
			if written > maxWarnings+maxWarning {
				t.Errorf("%d bytes are written", written)
			}
		})
	}
}

func withVariables(policy *admissionregistrationv1.ValidatingAdmissionPolicy, n int) *admissionregistrationv1.ValidatingAdmissionPolicy {
	for i := range n {
		policy.Spec.Variables = append(policy.Spec.Variables, admissionregistrationv1.Variable{Name: fmt.Sprint("v", i), Expression: "1"})
	}
	return policy
}

func TestKindsAreFew(t *testing.T) {
	kinds := newGears(maxKinds + 5)
	few := newFewKinds(kinds)
	for i := range maxKinds + 5 {
		_, _ = few.KindsFor(schema.GroupVersionResource{Group: "example.com", Version: fmt.Sprint("v", i+1), Resource: "gears"})
	}
	if len(few.found) != maxKinds {
		t.Errorf("%d kinds are found", len(few.found))
	}
	known, err := few.KindsFor(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gears"})
	if err != nil || len(known) != 1 {
		t.Errorf("a kind that was found before is %v, %v", known, err)
	}
}
