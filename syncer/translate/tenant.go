// Package translate converts names and metadata between a tenant's objects and
// their copies in the super cluster. It is pure: it only reads its arguments.
package translate

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Tenant is the part of a VirtualCluster that translation depends on.
type Tenant struct {
	// Key is the cluster key, which is also the name of the root namespace.
	Key string
	// Name, Namespace and UID are those of the VirtualCluster.
	Name, Namespace string
	UID             types.UID
	// RootUID is the UID of the root namespace, which owns the tenant's other
	// namespaces.
	RootUID types.UID
	// Opaque are prefixes of metadata keys that stay in the tenant, Transparent
	// of those that are synced up.
	Opaque, Transparent []string
	// Weight is the tenant's share of the syncer.
	Weight int32
	// ServiceCIDR is the tenant's range of the super cluster's Service
	// addresses; invalid if it has none.
	ServiceCIDR netip.Prefix
	// SecondaryServiceCIDR is the same of the other IP family.
	SecondaryServiceCIDR netip.Prefix
	// ClusterDomain is the DNS domain of the tenant's cluster.
	ClusterDomain string
	// Endpoint is the URL of the tenant's apiserver.
	Endpoint string
	// PodEndpoint is the URL of the tenant's apiserver for pods; empty if it is
	// the same.
	PodEndpoint string
	// Sync configures which objects are synced, and Policy what pods may
	// request of the super cluster.
	Sync   tenancyv1alpha1.SyncSpec
	Policy tenancyv1alpha1.TenantPolicy
}

// NewTenant returns the Tenant of a VirtualCluster. rootUID is the UID of its
// root namespace.
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
	t.ServiceCIDR, _ = netip.ParsePrefix(vc.Status.ServiceCIDR) // invalid if empty
	t.SecondaryServiceCIDR, _ = netip.ParsePrefix(vc.Status.SecondaryServiceCIDR)
	if vc.Spec.Sync != nil {
		t.Sync = *vc.Spec.Sync.DeepCopy()
	}
	if vc.Spec.Policy != nil {
		t.Policy = *vc.Spec.Policy.DeepCopy()
	}
	return t
}

// SuperNamespace returns the name in the super cluster of a tenant's namespace;
// empty for empty.
func (t Tenant) SuperNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return names.SuperNamespace(t.Key, namespace)
}

// SuperKey returns the key of the copy of a tenant's object.
func (t Tenant) SuperKey(key client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: t.SuperNamespace(key.Namespace), Name: key.Name}
}

// Text replaces names of the super cluster in a text about an object in a
// namespace of the tenant, so that the tenant can read it.
func (t Tenant) Text(text, namespace string) string {
	return names.TenantText(text, t.Key, t.Name, namespace)
}

// ServiceRanges returns the tenant's ranges of the super cluster's Service
// addresses: none, one, or one of each IP family.
func (t Tenant) ServiceRanges() []netip.Prefix {
	var ranges []netip.Prefix
	for _, cidr := range []netip.Prefix{t.ServiceCIDR, t.SecondaryServiceCIDR} {
		if cidr.IsValid() {
			ranges = append(ranges, cidr)
		}
	}
	return ranges
}

// ServiceAddress returns the address with that number in the tenant's range of
// Service addresses; invalid if there is none.
func (t Tenant) ServiceAddress(number int) netip.Addr { return addresses.In(t.ServiceCIDR, number) }

// defaultGracePeriod is the default limit for the grace period of a pod, in
// seconds. It bounds how long draining a node takes.
const defaultGracePeriod = 3600

// GracePeriod limits a grace period in seconds to the maximum of the tenant's
// policy; nil stays nil. A negative period counts as one second, as in an
// apiserver.
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

// Apiservers returns the addresses at which the tenant's apiserver serves, as far
// as the VirtualCluster's status has addresses instead of host names.
func (t Tenant) Apiservers() []netip.AddrPort {
	var all []netip.AddrPort
	for _, endpoint := range []string{t.Endpoint, t.PodEndpoint} {
		if at := addressOf(endpoint); at.IsValid() && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// ServesAt reports whether the tenant's apiserver serves at an address, as far
// as the VirtualCluster's status knows its addresses.
func (t Tenant) ServesAt(at netip.AddrPort) bool { return slices.Contains(t.Apiservers(), at) }

// addressOf returns the address and port of an https URL; invalid if it has a
// host name.
func addressOf(endpoint string) netip.AddrPort {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return netip.AddrPort{}
	}
	at, _ := netip.ParseAddrPort(net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "443"))) // invalid for a host name
	return at
}
