// Package networks holds the generated CustomResourceDefinition of networks,
// which the syncer installs in tenants.
package networks

import (
	_ "embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed arktos.futurewei.com_networks.yaml
var manifest []byte

// CRD returns the CustomResourceDefinition, each call a copy of its own.
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(manifest, crd); err != nil {
		return nil, fmt.Errorf("parse the embedded CRD of networks: %w", err)
	}
	return crd, nil
}
