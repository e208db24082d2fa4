package networks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// flatTemplate is the template without a file.
const flatTemplate = `{"metadata": {"name": "default"}, "spec": {"type": "flat"}}`

// exampleKey is a cluster key by which a template is checked.
const exampleKey = "team-71a1c3-blue"

// Template is the default network of tenants: a Network in JSON, in which {{.}}
// is the tenant.
type Template struct {
	text *template.Template
	name string
}

// ReadTemplate reads the template in a file; of a flat network without one.
func ReadTemplate(file string) (*Template, error) {
	text := flatTemplate
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the template of the default network: %w", err)
		}
		text = string(data)
	}
	return parseTemplate(text)
}

// parseTemplate returns the template with a text.
func parseTemplate(text string) (*Template, error) {
	parsed, err := template.New("default network").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the template of the default network: %w", err)
	}
	t := &Template{text: parsed}
	n, err := t.fill(exampleKey)
	if err != nil {
		return nil, err
	}
	other, err := t.fill(exampleKey + "-2")
	if err != nil {
		return nil, err
	}
	if n.Name != other.Name {
		return nil, errors.New("the name of the default network must be the same for all tenants")
	}
	t.name = n.Name
	return t, nil
}

// Name returns the name of the default network.
func (t *Template) Name() string { return t.name }

// fill returns the default network of the tenant with a cluster key. The key is
// unique among all tenants, so that no two share what a provider finds by it.
func (t *Template) fill(key string) (*networkv1.Network, error) {
	filled := &bytes.Buffer{}
	if err := t.text.Execute(filled, key); err != nil {
		return nil, fmt.Errorf("fill in the template of the default network: %w", err)
	}
	decoder := json.NewDecoder(filled)
	decoder.DisallowUnknownFields()
	n := &networkv1.Network{}
	if err := decoder.Decode(n); err != nil {
		return nil, fmt.Errorf("the template of the default network is no Network in JSON: %w", err)
	}
	if problems := validation.IsDNS1123Label(n.Name); len(problems) > 0 {
		return nil, fmt.Errorf("metadata.name of the default network: %s", problems[0])
	}
	if n.Spec.Type == "" {
		return nil, errors.New("spec.type of the default network must be set")
	}
	return n, nil
}
