package virtualcluster

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// allotServiceRange gives a tenant its part of the Service addresses before its
// control plane is first made, and writes it down at once: the control plane
// keeps it for life. A range of its own choice counts if it is in the pool; the
// control plane of a tenant that is older than the pool has another one
// already.
func (r *Reconciler) allotServiceRange(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	switch own := parseRange(vc.Spec.ServiceCIDR); {
	case vc.Status.ServiceCIDR != "" || !r.ServiceAddresses.Enabled():
		return nil
	case own.IsValid() && !r.ServiceAddresses.Contains(own):
		return nil
	case !own.IsValid() && (vc.Status.Endpoint != "" || !r.usesRange(vc)):
		return nil
	}
	r.allotments.Lock()
	defer r.allotments.Unlock()
	part, err := r.chooseRange(ctx, vc)
	if err != nil {
		return err
	}
	before := vc.DeepCopy()
	vc.Status.ServiceCIDR = part.String()
	r.allotments.add(vc) // also if the write fails: it may have happened
	err = r.Client.Status().Patch(ctx, vc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if err != nil {
		return fmt.Errorf("write the Service addresses of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	return nil
}

// usesRange reports whether the control plane would use the part that it is
// allotted.
func (r *Reconciler) usesRange(vc *tenancyv1alpha1.VirtualCluster) bool {
	chosen, ok := r.Provisioners[chooseProvisioner(vc, nil, r.Default)]
	return ok && chosen.Capabilities().ServiceCIDR
}

// chooseRange is the part that a tenant gets: the one that it names, or one
// that no tenant has or names.
func (r *Reconciler) chooseRange(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (netip.Prefix, error) {
	given, named, err := r.rangesOfOthers(ctx, vc)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list the Service addresses of all tenants: %w", err)
	}
	if own := parseRange(vc.Spec.ServiceCIDR); own.IsValid() {
		if servicecidr.Overlaps(own, given) {
			return own, provisioner.Failf(tenancyv1alpha1.ReasonServiceCIDRTaken,
				"spec.serviceCidr %s overlaps with the addresses of another tenant: it cannot be changed, so create the VirtualCluster again "+
					"with another one, or with none", own)
		}
		return own, nil
	}
	part, err := r.ServiceAddresses.Next(append(given, named...))
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
			given = appendRange(given, other.Status.ServiceCIDR)
			named = appendRange(named, other.Spec.ServiceCIDR)
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

func appendRange(ranges []netip.Prefix, text string) []netip.Prefix {
	if prefix := parseRange(text); prefix.IsValid() {
		return append(ranges, prefix)
	}
	return ranges
}
