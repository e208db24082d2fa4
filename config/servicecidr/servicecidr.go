// Package servicecidr holds the manifests of the pool of Service addresses and
// of the policy that keeps it for tenants, for programs that install them.
package servicecidr

import (
	_ "embed"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

var (
	//go:embed service_cidr.yaml
	pool []byte
	//go:embed policy.yaml
	policy []byte
	//go:embed binding.yaml
	binding []byte
)

// DefaultPool is the range in the manifest.
const DefaultPool = "10.104.0.0/13"

// Manifests are the pool of Service addresses and what keeps it for tenants, in
// the order in which they can be created.
type Manifests struct {
	Pool    *networkingv1.ServiceCIDR
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// Read returns the manifests, each call copies of its own.
func Read() (*Manifests, error) {
	m := &Manifests{
		Pool:    &networkingv1.ServiceCIDR{},
		Policy:  &admissionregistrationv1.ValidatingAdmissionPolicy{},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	}
	for _, manifest := range []struct {
		data []byte
		into any
	}{{pool, m.Pool}, {policy, m.Policy}, {binding, m.Binding}} {
		if err := yaml.UnmarshalStrict(manifest.data, manifest.into); err != nil {
			return nil, fmt.Errorf("read the embedded manifests of the Service addresses: %w", err)
		}
	}
	return m, nil
}
