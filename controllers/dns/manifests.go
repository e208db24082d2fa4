package dns

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
)

//go:embed manifests.yaml
var manifests string

// Settings are what differs between clusters.
type Settings struct {
	// Image is that of CoreDNS, Domain what it answers for, and Address the one of its service.
	Image, Domain, Address string
}

// render makes the objects of a cluster's DNS, in the order in which they are made.
func render(s Settings) ([]*unstructured.Unstructured, error) {
	parsed, err := template.New("dns").Option("missingkey=error").Parse(manifests)
	if err != nil {
		return nil, fmt.Errorf("read the manifests of DNS: %w", err)
	}
	filled := &bytes.Buffer{}
	if err := parsed.Execute(filled, s); err != nil {
		return nil, fmt.Errorf("fill in the manifests of DNS: %w", err)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(filled, filled.Len()); ; {
		obj := &unstructured.Unstructured{}
		switch err := decoder.Decode(&obj.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read the manifests of DNS: %w", err)
		}
		objects = append(objects, obj)
	}
}

// serviceAddress is the address of the DNS service in a range of Service addresses.
func serviceAddress(serviceCIDR string) (string, error) {
	part, err := netip.ParsePrefix(serviceCIDR)
	if err != nil {
		return "", fmt.Errorf("status.serviceCidr: %w", err)
	}
	address := addresses.In(part, addresses.DNS)
	if !address.IsValid() {
		return "", fmt.Errorf("status.serviceCidr %s has no tenth address, which is that of the DNS service", part)
	}
	return address.String(), nil
}

// versionOf tells one state of an object from another.
func versionOf(obj *unstructured.Unstructured) string {
	data, _ := obj.MarshalJSON() // of what was read from YAML, so it can
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
