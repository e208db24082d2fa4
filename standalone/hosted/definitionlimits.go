package hosted

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiserver/pkg/admission"
)

const (
	// longestPath is the length of a JSON path of a CustomResourceDefinition, in
	// bytes. Upstream's parser calls itself for each of its parts, a space is one,
	// and it parses the path when a custom resource is first read: from a megabyte
	// the stack overflows, which ends the process, and again after each restart.
	longestPath = 4096
	// deepestSchema is how deep schemas may be in each other. Upstream calls itself
	// for each level as well, and reads deep ones more than once.
	deepestSchema = 64
)

// limitDefinitions refuses CustomResourceDefinitions that are beyond these limits,
// whatever a patch, a policy or a webhook has made of them, before they are
// validated. The control plane itself writes the status of one that is older than
// the limits.
type limitDefinitions struct{}

// Handles implements admission.Interface.
func (limitDefinitions) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// Admit implements admission.MutationInterface, and changes nothing.
func (limitDefinitions) Admit(ctx context.Context, request admission.Attributes, _ admission.ObjectInterfaces) error {
	definition, ok := request.GetObject().(*apiextensions.CustomResourceDefinition)
	if !ok || isPlatform(ctx) || isInternal(ctx) {
		return nil
	}
	return forbid(request, refuseDefinition(&definition.Spec))
}

// refuseDefinition returns which limit a definition exceeds.
func refuseDefinition(spec *apiextensions.CustomResourceDefinitionSpec) error {
	if err := refuseParts(spec.Validation, spec.AdditionalPrinterColumns, spec.SelectableFields); err != nil {
		return err
	}
	for _, version := range spec.Versions {
		if err := refuseParts(version.Schema, version.AdditionalPrinterColumns, version.SelectableFields); err != nil {
			return err
		}
	}
	return nil
}

// refuseParts does so for the parts that a version has, or all versions have.
func refuseParts(
	schema *apiextensions.CustomResourceValidation,
	columns []apiextensions.CustomResourceColumnDefinition, fields []apiextensions.SelectableField,
) error {
	for _, column := range columns {
		if err := refusePath(column.JSONPath); err != nil {
			return err
		}
	}
	for _, field := range fields {
		if err := refusePath(field.JSONPath); err != nil {
			return err
		}
	}
	if schema != nil && isDeeper(schema.OpenAPIV3Schema, deepestSchema) {
		return fmt.Errorf("a schema is nested deeper than %d levels: use x-kubernetes-preserve-unknown-fields for what is deeper", deepestSchema)
	}
	return nil
}

func refusePath(path string) error {
	if len(path) > longestPath {
		return fmt.Errorf("a jsonPath has %d bytes, and the limit is %d: use a shorter one", len(path), longestPath)
	}
	return nil
}

// isDeeper reports whether a schema has more levels.
func isDeeper(schema *apiextensions.JSONSchemaProps, levels int) bool {
	if schema == nil {
		return false
	}
	if levels == 0 {
		return true
	}
	for _, inner := range within(schema) {
		if isDeeper(inner, levels-1) {
			return true
		}
	}
	return false
}

// within returns the schemas in a schema, of which some can be nil.
func within(schema *apiextensions.JSONSchemaProps) []*apiextensions.JSONSchemaProps {
	all := []*apiextensions.JSONSchemaProps{schema.Not}
	if items := schema.Items; items != nil {
		all = append(append(all, items.Schema), pointers(items.JSONSchemas)...)
	}
	for _, or := range []*apiextensions.JSONSchemaPropsOrBool{schema.AdditionalProperties, schema.AdditionalItems} {
		if or != nil {
			all = append(all, or.Schema)
		}
	}
	for _, list := range [][]apiextensions.JSONSchemaProps{schema.AllOf, schema.OneOf, schema.AnyOf} {
		all = append(all, pointers(list)...)
	}
	for _, properties := range []map[string]apiextensions.JSONSchemaProps{schema.Properties, schema.PatternProperties, schema.Definitions} {
		for _, property := range properties {
			all = append(all, &property)
		}
	}
	for _, dependency := range schema.Dependencies {
		all = append(all, dependency.Schema)
	}
	return all
}

func pointers(schemas []apiextensions.JSONSchemaProps) []*apiextensions.JSONSchemaProps {
	all := make([]*apiextensions.JSONSchemaProps, len(schemas))
	for i := range schemas {
		all[i] = &schemas[i]
	}
	return all
}
