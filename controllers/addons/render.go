package addons

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Render makes the objects of manifests, which are a template that is filled in
// with settings.
func Render(manifests string, settings any) ([]*unstructured.Unstructured, error) {
	parsed, err := template.New("manifests").Option("missingkey=error").Parse(manifests)
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	filled := &bytes.Buffer{}
	if err := parsed.Execute(filled, settings); err != nil {
		return nil, fmt.Errorf("fill in the manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(filled, filled.Len()); ; {
		obj := &unstructured.Unstructured{}
		switch err := decoder.Decode(&obj.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		objects = append(objects, obj)
	}
}
