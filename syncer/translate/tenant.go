// Package translate turns names and metadata of a tenant's objects into those of the super cluster's, and back. It is pure:
// it reads nothing but its arguments.
package translate

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Tenant is what translation has to know of a VirtualCluster.
type Tenant struct {
	// Key is the cluster key, which is also the name of the root namespace.
	Key string
	// Name, Namespace and UID are the VirtualCluster's.
	Name, Namespace string
	UID             types.UID
	// RootUID is the UID of the root namespace, which owns the tenant's other namespaces.
	RootUID types.UID
	// Opaque are prefixes of metadata keys that stay in the tenant, Transparent of those that come up to it.
	Opaque, Transparent []string
	// Weight is the tenant's share of the syncer.
	Weight int32
	// ServiceCIDR is the tenant's own part of the super cluster's Service addresses; invalid if it has none.
	ServiceCIDR netip.Prefix
	// ClusterDomain is the DNS domain of the tenant's cluster.
	ClusterDomain string
	// Endpoint is the URL of the tenant's apiserver.
	Endpoint string
	// PodEndpoint is the URL at which pods reach it; empty if that is the same.
	PodEndpoint string
	// Sync is what is carried, where it differs from the default, and Policy what pods may ask of the super cluster.
	Sync   tenancyv1alpha1.SyncSpec
	Policy tenancyv1alpha1.TenantPolicy
}

// NewTenant reads a Tenant from its VirtualCluster and the UID of its root namespace.
func NewTenant(vc *tenancyv1alpha1.VirtualCluster, rootUID types.UID) Tenant {
	t := Tenant{
		Key:         vc.Status.ClusterNamespace,
		Name:        vc.Name,
		Namespace:   vc.Namespace,
		UID:         vc.UID,
		RootUID:     rootUID,
		Opaque:      vc.Spec.OpaqueMetaPrefixes,
		Transparent: vc.Spec.TransparentMetaPrefixes,
		Weight:      max(vc.Spec.Weight, 1),

		ClusterDomain: cmp.Or(vc.Spec.ClusterDomain, addresses.DefaultDomain),
		Endpoint:      vc.Status.Endpoint,
		PodEndpoint:   vc.Status.PodEndpoint,
	}
	t.ServiceCIDR, _ = netip.ParsePrefix(vc.Status.ServiceCIDR) // which the manager wrote; without one, it is invalid
	if vc.Spec.Sync != nil {
		t.Sync = *vc.Spec.Sync.DeepCopy()
	}
	if vc.Spec.Policy != nil {
		t.Policy = *vc.Spec.Policy.DeepCopy()
	}
	return t
}

// SuperNamespace is the super cluster's namespace of a namespace of the tenant; cluster-scoped stays cluster-scoped.
func (t Tenant) SuperNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return names.SuperNamespace(t.Key, namespace)
}

// SuperKey is the super cluster's key of a namespaced object of the tenant.
func (t Tenant) SuperKey(key client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: t.SuperNamespace(key.Namespace), Name: key.Name}
}

// Text takes the super cluster's names out of a text that the tenant will read, about an object in a namespace of the tenant's.
func (t Tenant) Text(text, namespace string) string {
	return names.TenantText(text, t.Key, t.Name, namespace)
}

// ServiceAddress is the address of that number in the tenant's part of the Service addresses; invalid if there is none.
func (t Tenant) ServiceAddress(number int) netip.Addr { return addresses.In(t.ServiceCIDR, number) }

// defaultGracePeriod is the longest grace period of a pod, in seconds, unless the policy says otherwise: an admin can still wait
// for it when draining a node.
const defaultGracePeriod = 3600

// GracePeriod returns a grace period in seconds within what the tenant's policy allows; nil stays nil. A negative period counts
// as one second, as for an apiserver.
func (t Tenant) GracePeriod(seconds *int64) *int64 {
	if seconds == nil {
		return nil
	}
	most := ptr.Deref(t.Policy.MaxGracePeriodSeconds, defaultGracePeriod)
	if *seconds < 0 {
		return new(min(1, most))
	}
	return new(min(*seconds, most))
}

// ServesAt reports whether the tenant's apiserver serves at an address, as far as the platform knows addresses.
func (t Tenant) ServesAt(at netip.AddrPort) bool {
	return addressOf(t.Endpoint) == at || addressOf(t.PodEndpoint) == at
}

// addressOf returns the address and port of an https URL; invalid if it names a host.
func addressOf(endpoint string) netip.AddrPort {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return netip.AddrPort{}
	}
	at, _ := netip.ParseAddrPort(net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "443"))) // invalid for the name of a host
	return at
}
