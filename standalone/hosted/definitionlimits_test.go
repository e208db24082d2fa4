package hosted

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestLimitDefinitions(t *testing.T) {
	type (
		version = apiextensions.CustomResourceDefinitionVersion
		spec    = apiextensions.CustomResourceDefinitionSpec
		props   = apiextensions.JSONSchemaProps
	)
	longest := strings.Repeat(".a", longestPath/2)
	columns := func(path string) []apiextensions.CustomResourceColumnDefinition {
		return []apiextensions.CustomResourceColumnDefinition{{JSONPath: ".metadata.name"}, {JSONPath: path}}
	}
	selectable := func(path string) []apiextensions.SelectableField {
		return []apiextensions.SelectableField{{JSONPath: path}}
	}
	definition := func(s spec) runtime.Object { return &apiextensions.CustomResourceDefinition{Spec: s} }
	withVersion := func(v version) runtime.Object { return definition(spec{Versions: []version{{}, v}}) }
	// nested returns a definition with as many levels of schemas.
	nested := func(levels int, in func(props) props) runtime.Object {
		s := props{}
		for range levels - 1 {
			s = in(s)
		}
		return withVersion(version{Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &s}})
	}
	cases := map[string]struct {
		object  runtime.Object
		refused bool
	}{
		"another kind":                   {&api.ConfigMap{}, false},
		"nothing":                        {withVersion(version{}), false},
		"the longest column":             {withVersion(version{AdditionalPrinterColumns: columns(longest)}), false},
		"a column of spaces":             {withVersion(version{AdditionalPrinterColumns: columns(longest + " ")}), true},
		"a field":                        {withVersion(version{SelectableFields: selectable(longest + ".a")}), true},
		"a column of all versions":       {definition(spec{AdditionalPrinterColumns: columns(longest + ".a")}), true},
		"a field that all versions have": {definition(spec{SelectableFields: selectable(longest + ".a")}), true},
	}
	list := func(s props) []props { return []props{{}, s} }
	named := func(s props) map[string]props { return map[string]props{"a": {}, "b": s} }
	for name, in := range map[string]func(props) props{
		"not":             func(s props) props { return props{Not: &s} },
		"items":           func(s props) props { return props{Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &s}} },
		"lists of items":  func(s props) props { return props{Items: &apiextensions.JSONSchemaPropsOrArray{JSONSchemas: list(s)}} },
		"additionalItems": func(s props) props { return props{AdditionalItems: &apiextensions.JSONSchemaPropsOrBool{Schema: &s}} },
		"additionalProperties": func(s props) props {
			return props{AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Schema: &s}}
		},
		"allOf":             func(s props) props { return props{AllOf: list(s)} },
		"anyOf":             func(s props) props { return props{AnyOf: list(s)} },
		"oneOf":             func(s props) props { return props{OneOf: list(s)} },
		"properties":        func(s props) props { return props{Properties: named(s)} },
		"patternProperties": func(s props) props { return props{PatternProperties: named(s)} },
		"definitions":       func(s props) props { return props{Definitions: named(s)} },
		"dependencies": func(s props) props {
			return props{Dependencies: apiextensions.JSONSchemaDependencies{"a": {}, "b": {Schema: &s}}}
		},
	} {
		cases[name] = struct {
			object  runtime.Object
			refused bool
		}{nested(deepestSchema, in), false}
		cases[name+" in one more"] = struct {
			object  runtime.Object
			refused bool
		}{nested(deepestSchema+1, in), true}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := admission.NewAttributesRecord(tc.object, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "",
				admission.Create, nil, false, nil)
			err := limitDefinitions{}.Admit(t.Context(), request, nil)
			if tc.refused != apierrors.IsForbidden(err) || !tc.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
