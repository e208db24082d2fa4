package virtualcluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// family is one IP family of a tenant's Service addresses.
type family struct {
	field string
	pool  servicecidr.Pool
	// named is the range that the tenant names, and given the part that it has.
	named string
	given *string
}

// families returns the IP families of a tenant, the one of single-stack Services
// first.
func (r *Reconciler) families(vc *tenancyv1alpha1.VirtualCluster) []family {
	return []family{
		{"serviceCidr", r.ServiceAddresses, vc.Spec.ServiceCIDR, &vc.Status.ServiceCIDR},
		{"secondaryServiceCidr", r.SecondaryServiceAddresses, vc.Spec.SecondaryServiceCIDR, &vc.Status.SecondaryServiceCIDR},
	}
}

// allotServiceRanges gives a tenant its parts of the Service addresses before its
// control plane is first made, or the second one later, and writes them down at
// once: the control plane keeps them for life.
func (r *Reconciler) allotServiceRanges(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	families := r.families(vc)
	if vc.Status.ServiceCIDR == "" && !r.isAllotted(vc, families[0]) {
		return nil
	}
	missing := slices.DeleteFunc(families, func(f family) bool { return *f.given != "" || !r.isAllotted(vc, f) })
	if len(missing) == 0 {
		return nil
	}
	r.allotments.Lock()
	defer r.allotments.Unlock()
	before := vc.DeepCopy()
	for _, f := range missing {
		part, err := r.chooseRange(ctx, vc, f)
		if err != nil {
			before.DeepCopyInto(vc)
			return err
		}
		*f.given = part.String()
	}
	r.allotments.add(vc) // also if the write fails: it may have happened
	err := r.Client.Status().Patch(ctx, vc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if err != nil {
		return fmt.Errorf("write the Service addresses of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	return nil
}

// isAllotted reports whether a tenant gets a part of a pool. A range of its own
// choice counts if it is in the pool; the control plane of a tenant that is older
// than the pool has another one already, unless that one is of the first pool:
// then it can get one of the second.
func (r *Reconciler) isAllotted(vc *tenancyv1alpha1.VirtualCluster, f family) bool {
	switch own := parseRange(f.named); {
	case !f.pool.Enabled():
		return false
	case own.IsValid():
		return f.pool.Contains(own)
	}
	return r.usesRange(vc)
}

// usesRange reports whether the control plane would use the part that it is
// allotted now.
func (r *Reconciler) usesRange(vc *tenancyv1alpha1.VirtualCluster) bool {
	chosen, ok := r.Provisioners[chooseProvisioner(vc, nil, r.Default)]
	if !ok {
		return false
	}
	can := chosen.Capabilities()
	if vc.Status.Endpoint != "" {
		return can.SecondServiceCIDR && vc.Status.ServiceCIDR != ""
	}
	return can.ServiceCIDR
}

// chooseRange is the part that a tenant gets: the one that it names, or one
// that no tenant has or names.
func (r *Reconciler) chooseRange(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, f family) (netip.Prefix, error) {
	given, named, err := r.rangesOfOthers(ctx, vc)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list the Service addresses of all tenants: %w", err)
	}
	if own := parseRange(f.named); own.IsValid() {
		if servicecidr.Overlaps(own, given) {
			return own, provisioner.Failf(tenancyv1alpha1.ReasonServiceCIDRTaken,
				"spec.%s %s overlaps with the addresses of another tenant: it cannot be changed, so create the VirtualCluster again "+
					"with another one, or with none", f.field, own)
		}
		return own, nil
	}
	part, err := f.pool.Next(append(given, named...))
	if err != nil {
		return part, provisioner.Failf(tenancyv1alpha1.ReasonServiceCIDRTaken, "no Service addresses: %s", err)
	}
	return part, nil
}

// rangesOfOthers returns the ranges that other tenants were given, and those
// that they name.
func (r *Reconciler) rangesOfOthers(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (given, named []netip.Prefix, err error) {
	others := &tenancyv1alpha1.VirtualClusterList{}
	if err := r.Client.List(ctx, others, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != vc.UID {
			given = appendRanges(given, other.Status.ServiceCIDR, other.Status.SecondaryServiceCIDR)
			named = appendRanges(named, other.Spec.ServiceCIDR, other.Spec.SecondaryServiceCIDR)
		}
	}
	recent, err := r.allotments.besides(ctx, r.Live, others.Items)
	return append(given, recent...), named, err
}

// parseRange reads a range; one that is none, or empty, is invalid.
func parseRange(text string) netip.Prefix {
	prefix, _ := netip.ParsePrefix(text)
	return prefix
}

// appendRanges appends the ranges that are valid.
func appendRanges(ranges []netip.Prefix, texts ...string) []netip.Prefix {
	for _, text := range texts {
		if prefix := parseRange(text); prefix.IsValid() {
			ranges = append(ranges, prefix)
		}
	}
	return ranges
}
