// Package metricsapi has tenants' apiservers ask vn-agent for metrics.k8s.io.
package metricsapi

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/cert"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// service names vn-agent in a tenant. An apiserver finds by it where the API is served.
const service = "vn-agent"

// ServerName is the name in vn-agent's serving certificate that tenants'
// apiservers verify.
const ServerName = service + "." + metav1.NamespaceSystem + ".svc"

//go:embed manifests.yaml
var manifests string

// settings are those of the manifests.
type settings struct {
	Service, Namespace string
	// Host and Port lead to vn-agent; CA verifies it, in PEM and base64.
	Host, CA string
	Port     int32
}

// Addon is the API of tenants, which vn-agent serves at an address, with a
// certificate of the authorities in a file.
func Addon(address, caFile string) (addons.Addon, error) {
	host, port, err := addresses.SplitHostPort(address)
	if err != nil {
		return addons.Addon{}, err
	}
	if problems := validation.IsDNS1123Subdomain(host); len(problems) > 0 {
		return addons.Addon{}, fmt.Errorf("%q must be a DNS name or an IPv4 address, to be the external name of a Service", host)
	}
	ca, err := readAuthorities(caFile)
	if err != nil {
		return addons.Addon{}, fmt.Errorf("the authority of vn-agent: %w", err)
	}
	return addon(settings{
		Service: service, Namespace: metav1.NamespaceSystem, Host: host, Port: port, CA: base64.StdEncoding.EncodeToString(ca),
	}), nil
}

// Retired is the API of tenants that nothing serves any more. Left alone, it
// would not answer, and so keep namespaces from being deleted.
func Retired() addons.Addon {
	retired := addon(settings{Service: service, Namespace: metav1.NamespaceSystem})
	retired.Retired = true
	return retired
}

func addon(s settings) addons.Addon {
	return addons.Addon{
		Name:    "resource metrics API",
		OptOut:  names.Metrics,
		Network: true,
		Objects: func(*tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error) {
			return addons.Render(manifests, s)
		},
	}
}

// readAuthorities reads certificates. A key beside them, which tenants would be
// shown, is left out.
func readAuthorities(file string) ([]byte, error) {
	if file == "" {
		return nil, errors.New("no file is given")
	}
	certificates, err := cert.CertsFromFile(file)
	if err != nil {
		return nil, err
	}
	return cert.EncodeCertificates(certificates...)
}
