// Package crd holds the generated CustomResourceDefinitions of the tenancy API,
// for programs that install them.
package crd

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed tenancy.x-k8s.io_*.yaml
var manifests embed.FS

// All returns the CustomResourceDefinitions, each call a copy of its own.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list embedded CRDs: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, file := range files {
		crd, err := parse(file)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

func parse(file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := manifests.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read embedded CRD %s: %w", file, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, fmt.Errorf("parse embedded CRD %s: %w", file, err)
	}
	return crd, nil
}
