// Package dns manages a CoreDNS in the cluster of each tenant that has Service
// addresses of its own, at the address that its pods use.
package dns

import (
	"cmp"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// DefaultImage is the CoreDNS that belongs to the Kubernetes of this project.
const DefaultImage = "registry.k8s.io/coredns/coredns:v1.14.2"

var (
	//go:embed manifests.yaml
	manifests string
	//go:embed shared.yaml
	sharedManifests string
)

// Settings are what differs between clusters.
type Settings struct {
	// Image is that of CoreDNS, Domain what it answers for, and Address the one
	// of its service.
	Image, Domain, Address string
}

// Objects are those of a cluster's DNS, in the order in which they are made.
func (s Settings) Objects() ([]*unstructured.Unstructured, error) { return addons.Render(manifests, s) }

// sharedObjects are those of a cluster with the DNS that tenants share.
func (s Settings) sharedObjects() ([]*unstructured.Unstructured, error) {
	return addons.Render(sharedManifests, s)
}

// Addon is the DNS of tenants, with an image of CoreDNS.
func Addon(image string) addons.Addon { return addon(Settings.Objects, image) }

// Addons are the DNS of tenants that share one: a Service for it, or, for a
// tenant that asks for it, a CoreDNS with an image. A CoreDNS that is not asked
// for any more is deleted. Without an image, a tenant cannot ask for one.
func Addons(image string) []addons.Addon {
	shared, dedicated, retired := addon(Settings.sharedObjects, image), Addon(image), Addon(image)
	dedicated.Applies = func(choice string) bool { return choice == names.Dedicated && image != "" }
	shared.Applies = func(choice string) bool { return !dedicated.Applies(choice) }
	retired.Applies, retired.Retired = shared.Applies, true
	retired.Objects = func(vc *tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error) {
		objects, err := dedicated.Objects(vc)
		// These are objects of the shared DNS, too.
		return slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool {
			return obj.GetKind() == "ConfigMap" || obj.GetKind() == "Service"
		}), err
	}
	return []addons.Addon{shared, retired, dedicated}
}

func addon(objects func(Settings) ([]*unstructured.Unstructured, error), image string) addons.Addon {
	return addons.Addon{
		Name:   "DNS",
		OptOut: names.DNS,
		Objects: func(vc *tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error) {
			if vc.Status.ServiceCIDR == "" {
				return nil, nil
			}
			address, err := serviceAddress(vc.Status.ServiceCIDR)
			if err != nil {
				return nil, err
			}
			domain := cmp.Or(vc.Spec.ClusterDomain, addresses.DefaultDomain)
			return objects(Settings{Image: image, Domain: domain, Address: address})
		},
	}
}

// serviceAddress is the address of the DNS service in a range of Service
// addresses.
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
