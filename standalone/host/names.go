package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// heldField is the index of HostedControlPlanes by the extra names that they have,
// and wantedField that of VirtualClusters by those that they want.
const (
	heldField   = "status.extraSANs"
	wantedField = "spec.controlPlane.extraSANs"
)

// named returns the control plane that clients reach by a name.
func (h *host) named(ctx context.Context, serverName string) (controlPlane string, found bool) {
	if key, found := keyBelow(serverName, h.options.Domain); found {
		return key, true
	}
	holders := &tenancyv1alpha1.HostedControlPlaneList{}
	err := h.manager.GetCache().List(ctx, holders, client.MatchingFields{heldField: serverName}, client.UnsafeDisableDeepCopy)
	if err != nil || len(holders.Items) == 0 {
		return "", false
	}
	// Two replicas may give a name away at the same time, until one of them sees it.
	return slices.MinFunc(holders.Items, byAge).Namespace, true
}

// indexNames indexes who has and who wants an extra name.
func (r *controlPlanes) indexNames(ctx context.Context, indexer client.FieldIndexer) error {
	held := func(object client.Object) []string {
		plane, _ := object.(*tenancyv1alpha1.HostedControlPlane)
		return plane.Status.ExtraSANs
	}
	wanted := func(object client.Object) []string {
		vc, _ := object.(*tenancyv1alpha1.VirtualCluster)
		return wantedBy(vc)
	}
	return errors.Join(
		indexer.IndexField(ctx, &tenancyv1alpha1.HostedControlPlane{}, heldField, held),
		indexer.IndexField(ctx, &tenancyv1alpha1.VirtualCluster{}, wantedField, wanted),
	)
}

// wantedBy returns the extra names and addresses of a spec.
func wantedBy(vc *tenancyv1alpha1.VirtualCluster) []string {
	if vc.Spec.ControlPlane == nil {
		return nil
	}
	return vc.Spec.ControlPlane.ExtraSANs
}

// withSANs returns the VirtualCluster with those of its extra names that its
// control plane has.
func withSANs(vc *tenancyv1alpha1.VirtualCluster, sans []string) *tenancyv1alpha1.VirtualCluster {
	if len(wantedBy(vc)) == len(sans) {
		return vc
	}
	vc = vc.DeepCopy()
	vc.Spec.ControlPlane.ExtraSANs = sans
	return vc
}

// rivals returns the control planes of VirtualClusters that want a name of this
// one, which may have become free.
func (r *controlPlanes) rivals(ctx context.Context, object client.Object) []reconcile.Request {
	plane, _ := object.(*tenancyv1alpha1.HostedControlPlane)
	var requests []reconcile.Request
	for _, name := range plane.Status.ExtraSANs {
		wanting := &tenancyv1alpha1.VirtualClusterList{}
		if err := r.List(ctx, wanting, client.MatchingFields{wantedField: name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil // the cache has stopped
		}
		for i := range wanting.Items {
			vc := &wanting.Items[i]
			requests = append(requests, requestFor(names.ClusterKey(vc.Namespace, vc.Name, vc.UID)))
		}
	}
	return requests
}

// sansOf returns the extra names of a control plane.
func (r *controlPlanes) sansOf(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, vc *tenancyv1alpha1.VirtualCluster,
) (sans, error) {
	var failed []error
	chosen := chooseSANs(wantedBy(vc), plane, r.platform, func(name string) []tenancyv1alpha1.HostedControlPlane {
		holders := &tenancyv1alpha1.HostedControlPlaneList{}
		if err := r.List(ctx, holders, client.MatchingFields{heldField: name}, client.UnsafeDisableDeepCopy); err != nil {
			failed = append(failed, fmt.Errorf("list the control planes with the name %s: %w", name, err))
		}
		return holders.Items
	})
	return chosen, errors.Join(failed...)
}

// keyBelow returns the cluster key of a name below the domain of control planes.
func keyBelow(name, domain string) (key string, found bool) {
	if domain == "" {
		return "", false
	}
	key, below := strings.CutSuffix(name, "."+domain)
	return key, below && names.MayBeClusterKey(key)
}

// byAge orders control planes by their age, the oldest one first.
func byAge(a, b tenancyv1alpha1.HostedControlPlane) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}

// platformNames are names and addresses by which the platform is reached.
type platformNames struct {
	// domain is that of the names of control planes; empty for none.
	domain   string
	hosts    []string
	networks []netip.Prefix
}

// platformNames returns those of an installation, whose super cluster has a URL.
func (o *Options) platformNames(super string) platformNames {
	p := platformNames{domain: o.Domain, hosts: []string{o.PodAddress}}
	for _, address := range []string{o.Advertise, o.InternalAddress} {
		if host, _, err := splitAddress("", address); err == nil {
			p.hosts = append(p.hosts, host)
		}
	}
	if parsed, err := url.Parse(super); err == nil {
		p.hosts = append(p.hosts, parsed.Hostname())
	}
	for _, network := range o.Internal {
		if prefix, err := netip.ParsePrefix(network); err == nil { // Validate has checked it
			p.networks = append(p.networks, prefix)
		}
	}
	return p
}

// reserves returns why no control plane can have an extra name or address; empty
// if one can. The API server has checked its form, unless the object is older than
// the rule.
func (p platformNames) reserves(san string) string {
	if slices.Contains(p.hosts, san) {
		return "is one of the platform"
	}
	if ip, err := netip.ParseAddr(san); err == nil {
		switch {
		case !ip.IsGlobalUnicast() || ip.Is4In6():
			return "is no address of a network"
		case slices.ContainsFunc(p.networks, func(network netip.Prefix) bool { return network.Contains(ip) }):
			return "is an address of the super cluster"
		}
		return ""
	}
	switch _, isKey := keyBelow(san, p.domain); {
	case !names.IsCompleteHost(san):
		return "is no complete DNS name in lower case"
	case names.IsReservedHost(san), san == p.domain:
		return "is one of the platform"
	case isKey:
		return "has the form of the names that vc-host gives to control planes"
	}
	return ""
}

// sans are the extra names and addresses of a control plane.
type sans struct {
	// all are those in its certificate. Of these, clients reach it by dnsNames.
	all, dnsNames []string
	// report is about those that are rejected; nil if it wants none.
	report *contract.ExtraSANs
}

// chooseSANs returns those that a control plane has of the ones that it wants. The
// holders are the control planes that have a name. One that has a name keeps it,
// unless an older one has it, too.
func chooseSANs(
	wanted []string, own *tenancyv1alpha1.HostedControlPlane, platform platformNames,
	holders func(name string) []tenancyv1alpha1.HostedControlPlane,
) sans {
	if len(wanted) == 0 {
		return sans{}
	}
	chosen := sans{report: &contract.ExtraSANs{}}
	var rejected []string
	reject := func(san, reason, why string) {
		chosen.report.Rejected = cmp.Or(chosen.report.Rejected, reason)
		rejected = append(rejected, san+" "+why)
	}
	for _, san := range wanted {
		why := platform.reserves(san)
		_, err := netip.ParseAddr(san)
		switch isName := err != nil; {
		case why != "":
			reject(san, tenancyv1alpha1.ReasonNameReserved, why)
		case isName && isTaken(san, own, holders(san)):
			reject(san, tenancyv1alpha1.ReasonNameTaken, "is the name of another control plane")
		default:
			chosen.all = append(chosen.all, san)
			if isName {
				chosen.dnsNames = append(chosen.dnsNames, san)
			}
		}
	}
	if len(rejected) > 0 {
		chosen.report.Message = strings.Join(rejected, ", ") + ": remove it from spec.controlPlane.extraSANs; the others are used"
	}
	return chosen
}

// isTaken reports whether another control plane has a name.
func isTaken(name string, own *tenancyv1alpha1.HostedControlPlane, holders []tenancyv1alpha1.HostedControlPlane) bool {
	has := slices.Contains(own.Status.ExtraSANs, name)
	return slices.ContainsFunc(holders, func(other tenancyv1alpha1.HostedControlPlane) bool {
		return other.UID != own.UID && (!has || byAge(other, *own) < 0)
	})
}
