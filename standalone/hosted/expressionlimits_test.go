package hosted

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// expensive is an expression that takes longer than anything to compile.
var expensive = "optional.of(1)" + strings.Repeat(".optMap(a,a)", 20) + ".hasValue()"

// TestEveryExpressionIsLimited: each expression that an object of the API can have
// counts. A field that a new version of Kubernetes adds fails it.
func TestEveryExpressionIsLimited(t *testing.T) {
	found := 0
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, extensionsapiserver.Scheme} {
		for kind, objectType := range scheme.AllKnownTypes() {
			if kind.Version != runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "List") {
				continue
			}
			for _, path := range expressionsOf(objectType, nil, sets.New[reflect.Type]()) {
				found++
				object := reflect.New(objectType)
				set(object.Elem(), path, expensive)
				if workOf(object.Interface().(runtime.Object)) <= expression.MaxWork { //nolint:forcetypeassert // The scheme has objects alone.
					t.Errorf("%s: %s is not limited", kind.Kind, strings.Join(path, "."))
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d expressions", found)
	}
}

// expressionsOf returns the paths of fields of a type that are expressions, by their
// names.
func expressionsOf(t reflect.Type, path []string, in sets.Set[reflect.Type]) [][]string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return expressionsOf(t.Elem(), path, in)
	case reflect.Struct:
	default:
		return nil
	}
	if in.Has(t) || strings.HasSuffix(t.Name(), "Status") {
		return nil
	}
	in = in.Clone().Insert(t)
	var all [][]string
	for field := range t.Fields() {
		at := slices.Concat(path, []string{field.Name})
		isText := field.Type.Kind() == reflect.String
		if isText && (strings.HasSuffix(field.Name, "Expression") || field.Name == "Rule" && t.Name() == "ValidationRule") {
			all = append(all, at)
		}
		all = append(all, expressionsOf(field.Type, at, in)...)
	}
	return all
}

// set sets a field, and makes what it is in.
func set(value reflect.Value, path []string, text string) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		set(value.Elem(), path, text)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		set(value.Index(1), path, text)
	case reflect.Struct:
		set(value.FieldByName(path[0]), path[1:], text)
	default:
		value.SetString(text)
	}
}

func TestLimitExpressions(t *testing.T) {
	policy := func(expressions ...string) *admissionregistration.ValidatingAdmissionPolicy {
		p := &admissionregistration.ValidatingAdmissionPolicy{}
		for _, each := range expressions {
			p.Spec.Validations = append(p.Spec.Validations, admissionregistration.Validation{Expression: each})
		}
		return p
	}
	variables := policy("true")
	for range 20 {
		variables.Spec.Variables = append(variables.Spec.Variables, admissionregistration.Variable{Expression: "{variables.a: variables.a}"})
	}
	definition := func(s *apiextensions.JSONSchemaProps) runtime.Object {
		return &apiextensions.CustomResourceDefinition{Spec: apiextensions.CustomResourceDefinitionSpec{
			Versions: []apiextensions.CustomResourceDefinitionVersion{{}, {Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: s}}},
		}}
	}
	wide := &apiextensions.JSONSchemaProps{Properties: map[string]apiextensions.JSONSchemaProps{}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		wide.Properties[name] = apiextensions.JSONSchemaProps{AllOf: make([]apiextensions.JSONSchemaProps, 500)}
	}
	ruled := wide
	for range 30 {
		ruled = &apiextensions.JSONSchemaProps{Not: ruled, XValidations: apiextensions.ValidationRules{{Rule: "true"}}}
	}
	pattern := "(" + strings.Repeat("a", 2000) + "){1000}"
	many := slices.Repeat([]string{"true"}, 3000)
	for name, tc := range map[string]struct {
		object, old runtime.Object
		subresource string
		refused     bool
	}{
		"another kind":                   {object: &api.ConfigMap{}},
		"a policy":                       {object: policy("object.metadata.name == 'a'")},
		"an expensive one":               {object: policy(expensive), refused: true},
		"many":                           {object: policy(many...), refused: true},
		"variables":                      {object: variables, refused: true},
		"its status":                     {object: policy(expensive), subresource: "status"},
		"one from before the limit":      {object: policy(expensive), old: policy(expensive)},
		"one that became cheaper":        {object: policy(many...), old: policy(append(many, "true")...)},
		"one that became more expensive": {object: policy(append(many, "true")...), old: policy(many...), refused: true},
		"a schema without rules":         {object: definition(wide)},
		"rules above many schemas":       {object: definition(ruled), refused: true},
		"a pattern":                      {object: definition(&apiextensions.JSONSchemaProps{Pattern: pattern}), refused: true},
		"a pattern many times":           {object: definition(&apiextensions.JSONSchemaProps{AllOf: slices.Repeat([]apiextensions.JSONSchemaProps{{Pattern: pattern[:100]}}, 5000)})},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.NewAttributesRecord(tc.object, tc.old, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, tc.subresource,
				admission.Update, nil, false, nil)
			err := limitExpressions{}.Admit(t.Context(), request, nil)
			if tc.refused != apierrors.IsForbidden(err) || !tc.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
