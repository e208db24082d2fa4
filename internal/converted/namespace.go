// Package converted has what vc-manager, vc-gateway and vc-syncer agree on about
// the namespaces of converted tenants in the super cluster.
package converted

import (
	"cmp"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/podsecurity"
)

// Gateway is where clients in pods find the API of their tenant.
type Gateway struct {
	// URL is that of vc-gateway, without a path.
	URL string
	// CA verifies its serving certificate, in PEM; empty for the system's.
	CA []byte
	// DNS is the address at which pods ask the tenant's DNS; empty if there is none.
	DNS string
}

// NamespaceOf returns the platform's labels and annotations of all namespaces of
// a tenant. The super cluster's admission enforces the tenant's policy by them, and
// directs clients in pods to the gateway.
func NamespaceOf(vc *tenancyv1alpha1.VirtualCluster, gateway Gateway) (metav1.ObjectMeta, error) {
	address, err := url.Parse(gateway.URL)
	if err != nil || address.Hostname() == "" {
		return metav1.ObjectMeta{}, fmt.Errorf("read the URL of the gateway: %q has no host", gateway.URL)
	}
	policy := tenancyv1alpha1.TenantPolicy{}
	if vc.Spec.Policy != nil {
		policy = *vc.Spec.Policy
	}
	meta := metav1.ObjectMeta{Labels: names.OwnerLabels(vc), Annotations: names.OwnerAnnotations(vc)}
	meta.Labels[names.Converted] = vc.Status.ClusterNamespace
	meta.Labels[podsecurity.Enforce] = podsecurity.Level(policy)
	meta.Annotations[names.Cluster] = vc.Status.ClusterNamespace
	meta.Annotations[names.Policy] = PolicyText(policy)
	meta.Annotations[names.GatewayHost] = address.Hostname()
	meta.Annotations[names.GatewayPort] = cmp.Or(address.Port(), "443")
	meta.Annotations[names.GatewayCA] = string(gateway.CA)
	meta.Annotations[names.DNSAddress] = gateway.DNS
	meta.Annotations[names.DNSDomain] = cmp.Or(vc.Spec.ClusterDomain, addresses.DefaultDomain)
	if RunsDaemonSets(&vc.Spec) {
		meta.Annotations[names.DaemonSets] = string(tenancyv1alpha1.DaemonSetsRun)
	} else {
		meta.Annotations[names.DaemonSets] = string(tenancyv1alpha1.DaemonSetsRefuse)
	}
	return meta, nil
}

// AllowsConversionWebhooks reports whether the CRDs of a tenant may convert by
// webhooks.
func AllowsConversionWebhooks(spec *tenancyv1alpha1.VirtualClusterSpec) bool {
	return spec.Policy != nil && spec.Policy.AllowConversionWebhooks
}

// RunsDaemonSets reports whether a tenant may create DaemonSets.
func RunsDaemonSets(spec *tenancyv1alpha1.VirtualClusterSpec) bool {
	return spec.Policy != nil && spec.Policy.DaemonSets == tenancyv1alpha1.DaemonSetsRun
}
