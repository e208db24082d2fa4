package rules

import (
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// document is the content of a file of rules: the same list as in spec.quota.
type document struct {
	Rules []tenancyv1alpha1.QuotaRule `json:"rules"`
}

// read compiles the rules of a file; none if file is empty. No apiserver has
// validated them, so it rejects everything that an apiserver would reject in a
// VirtualCluster.
func read(file string, kinds []plugins.Kind) (*set, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var content document
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		return nil, fmt.Errorf("file %s: %w", file, err)
	}
	if len(content.Rules) == 0 {
		return nil, fmt.Errorf("file %s has no rules", file)
	}
	at := field.NewPath("rules")
	compiled, wrong := compile(content.Rules, at)
	if err := append(validate(content.Rules, at, kinds), wrong...).ToAggregate(); err != nil {
		return nil, fmt.Errorf("file %s: %w", file, err)
	}
	return compiled, nil
}

// validate returns an error for each missing field and unknown kind.
func validate(rules []tenancyv1alpha1.QuotaRule, at *field.Path, kinds []plugins.Kind) field.ErrorList {
	var wrong field.ErrorList
	names := make([]string, 0, len(rules))
	for i, r := range rules {
		here := at.Index(i)
		switch {
		case r.Name == "":
			wrong = append(wrong, field.Required(here.Child("name"), "messages name the rule"))
		case slices.Contains(names, r.Name):
			wrong = append(wrong, field.Duplicate(here.Child("name"), r.Name))
		}
		names = append(names, r.Name)
		if r.Message == "" {
			wrong = append(wrong, field.Required(here.Child("message"), "the tenant reads it"))
		}
		if len(r.Kinds) == 0 {
			wrong = append(wrong, field.Required(here.Child("kinds"), "such as Pod"))
		}
		for _, kind := range r.Kinds {
			if !slices.ContainsFunc(kinds, func(k plugins.Kind) bool { return k.Kind == string(kind) }) {
				wrong = append(wrong, field.Invalid(here.Child("kinds"), kind, "rules cannot be about this kind"))
			}
		}
	}
	return wrong
}
