package networks

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
)

const (
	// recount is when the ranges of networks are compared with Services again.
	recount = 5 * time.Second
	// maxRanges is the maximum of ranges of a network, as in its CRD, which a
	// tenant can change for a moment.
	maxRanges = 8
)

// ranges keeps the ranges of Service addresses of one tenant's networks as
// ServiceCIDRs in the tenant, by which its apiserver allocates addresses.
type ranges struct {
	cluster Cluster
	// within are the tenant's ranges; none if its apiserver does not allocate
	// addresses by network.
	within []netip.Prefix
	// first is the name of the default network.
	first string
	// none is set when the tenant has no ServiceCIDR of a network.
	none bool
	// use is how Services use the ranges; nil if no network has one.
	use *use
}

// ranged is what is known of a network with ranges.
type ranged struct {
	rejection *plugins.RejectionError
	condition *metav1.Condition
}

// sync ensures the ServiceCIDRs of networks, by age, and returns what is known
// of those with ranges.
func (r *ranges) sync(ctx context.Context, networks []networkv1.Network) (map[string]ranged, error) {
	wanted := withRanges(networks)
	r.use = nil
	if len(wanted) == 0 && r.none {
		return nil, nil
	}
	if len(r.within) == 0 {
		return unsupported(wanted), nil
	}
	list := &networkingv1.ServiceCIDRList{}
	if err := r.cluster.GetClient().List(ctx, list, client.HasLabels{networkv1.Label}); err != nil {
		return nil, fmt.Errorf("list the tenant's ServiceCIDRs: %w", err)
	}
	held := map[claim]*networkingv1.ServiceCIDR{}
	for i := range list.Items {
		if c, valid := r.claimOf(&list.Items[i]); valid && held[c] == nil {
			held[c] = &list.Items[i]
		}
	}
	granted, rejected := assign(wanted, func(c claim) bool { return held[c] != nil }, r.within)
	if err := r.create(ctx, granted, held); err != nil {
		return nil, err
	}
	if err := r.deleteOthers(ctx, list.Items, granted, held); err != nil {
		return nil, err
	}
	r.none = len(granted) == 0
	return r.describe(ctx, wanted, granted, rejected)
}

// withRanges returns the networks whose Services get addresses of their ranges.
func withRanges(networks []networkv1.Network) []networkv1.Network {
	var found []networkv1.Network
	for _, n := range networks[:min(len(networks), maxNetworks)] {
		if n.Spec.HasServiceRanges() {
			found = append(found, n)
		}
	}
	return found
}

// unsupported rejects networks with ranges.
func unsupported(networks []networkv1.Network) map[string]ranged {
	all := map[string]ranged{}
	for i := range networks {
		all[networks[i].Name] = ranged{rejection: &plugins.RejectionError{
			Reason:  networkv1.ReasonServiceRangesUnsupported,
			Message: "the apiserver of this cluster does not allocate Service addresses by network; remove spec.service.cidrs",
		}}
	}
	return all
}

// labels returns the labels of the ServiceCIDRs of a network.
func (r *ranges) labels(network string) map[string]string {
	labels := map[string]string{networkv1.Label: network}
	if network == r.first {
		labels[networkv1.DefaultLabel] = "true"
	}
	return labels
}

// claimOf returns the range of a ServiceCIDR, and false if it is not as the
// syncer creates them, or is being deleted.
func (r *ranges) claimOf(object *networkingv1.ServiceCIDR) (claim, bool) {
	c := claim{network: object.Labels[networkv1.Label]}
	if object.DeletionTimestamp != nil || len(object.Spec.CIDRs) != 1 {
		return c, false
	}
	_, first := object.Labels[networkv1.DefaultLabel]
	c.cidr, _ = netip.ParsePrefix(object.Spec.CIDRs[0])
	return c, c.cidr.IsValid() && first == (c.network == r.first)
}

// create creates the ServiceCIDRs that are missing.
func (r *ranges) create(ctx context.Context, granted []claim, held map[claim]*networkingv1.ServiceCIDR) error {
	for _, c := range granted {
		if held[c] != nil {
			continue
		}
		object := &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{GenerateName: c.network + "-", Labels: r.labels(c.network)},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{c.cidr.String()}},
		}
		r.none = false
		if err := r.cluster.GetClient().Create(ctx, object); err != nil {
			return fmt.Errorf("create a ServiceCIDR of Network %s: %w", c.network, err)
		}
	}
	return nil
}

// deleteOthers deletes the ServiceCIDRs of ranges that no network has any more.
func (r *ranges) deleteOthers(
	ctx context.Context, objects []networkingv1.ServiceCIDR, granted []claim, held map[claim]*networkingv1.ServiceCIDR,
) error {
	kept := map[*networkingv1.ServiceCIDR]bool{}
	for _, c := range granted {
		kept[held[c]] = true
	}
	for i := range objects {
		object := &objects[i]
		if kept[object] || object.DeletionTimestamp != nil {
			continue
		}
		if err := r.cluster.GetClient().Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ServiceCIDR %s: %w", object.Name, err)
		}
	}
	return nil
}

// describe returns what is known of networks with ranges.
func (r *ranges) describe(
	ctx context.Context, wanted []networkv1.Network, granted []claim, rejected map[string]*plugins.RejectionError,
) (map[string]ranged, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	services := &corev1.ServiceList{}
	if err := r.cluster.GetCache().List(ctx, services, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the tenant's Services: %w", err)
	}
	use := newUse(granted, r.within)
	for i := range services.Items {
		use.count(&services.Items[i], r.first)
	}
	r.use = use
	all := map[string]ranged{}
	for i := range wanted {
		name := wanted[i].Name
		all[name] = ranged{rejection: rejected[name], condition: use.condition(name, wanted[i].Generation)}
	}
	return all, nil
}

// misplaced reports whether a Service has an address that is not one of its
// network, which has others left.
func (r *ranges) misplaced(s *corev1.Service) bool {
	if r.use == nil {
		return false
	}
	network := cmp.Or(s.Labels[networkv1.Label], r.first)
	if free, hasRanges := r.use.free[network]; hasRanges && free <= 0 {
		return false
	}
	return len(r.use.straying(s, network)) > 0
}
