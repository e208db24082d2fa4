package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/utils/ptr"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// networkAddresses has Services get addresses of their network. It names an
// address in a Service that names none, before upstream's registry allocates it.
// Without ServiceCIDRs of networks, upstream chooses.
type networkAddresses struct {
	// parts are the ranges of all Services, one of each IP family.
	parts   []netip.Prefix
	ranges  networkinglisters.ServiceCIDRLister
	taken   networkinglisters.IPAddressLister
	network func(ctx context.Context, name string) (*networkv1.Network, error)
}

// newNetworkAddresses returns the addresses of a tenant's networks.
func newNetworkAddresses(t *Tenant, informers networkinginformers.Interface) *networkAddresses {
	n := &networkAddresses{
		ranges: informers.ServiceCIDRs().Lister(), taken: informers.IPAddresses().Lister(), network: t.readNetwork,
	}
	for i := range t.spec.ServiceCIDRs {
		if part, valid := netipx.FromStdIPNet(&t.spec.ServiceCIDRs[i]); valid {
			n.parts = append(n.parts, part)
		}
	}
	return n
}

// wrap has a registry allocate addresses of networks.
func (n *networkAddresses) wrap(registry *genericregistry.Store) {
	create, update := registry.BeginCreate, registry.BeginUpdate
	registry.BeginCreate = func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (finish, error) {
		return n.allocate(ctx, obj.(*api.Service), nil, dryrun.IsDryRun(options.DryRun), func() (finish, error) {
			return create(ctx, obj, options)
		})
	}
	registry.BeginUpdate = func(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (finish, error) {
		service, was := obj.(*api.Service), old.(*api.Service)
		proceed := func() (finish, error) { return update(ctx, obj, old, options) }
		if !hasAddress(service) {
			return proceed()
		}
		if hasAddress(was) && service.Labels[networkv1.Label] != was.Labels[networkv1.Label] {
			if err := n.verify(ctx, service, was.Spec.ClusterIPs); err != nil {
				return nil, err
			}
		}
		if hasAddress(was) && ptr.Equal(service.Spec.IPFamilyPolicy, was.Spec.IPFamilyPolicy) {
			return proceed() // it has the addresses that it needs
		}
		return n.allocate(ctx, service, was.Spec.ClusterIPs, dryrun.IsDryRun(options.DryRun), proceed)
	}
}

// finish ends a write that has begun.
type finish = genericregistry.FinishFunc

// hasAddress reports whether a Service has or needs an address.
func hasAddress(service *api.Service) bool {
	return service.Spec.Type != api.ServiceTypeExternalName && service.Spec.ClusterIP != api.ClusterIPNone
}

// allocate begins to write a Service that may need more addresses than those that
// it keeps.
func (n *networkAddresses) allocate(
	ctx context.Context, service *api.Service, kept []string, dry bool, begin func() (finish, error),
) (finish, error) {
	if !hasAddress(service) {
		return begin()
	}
	named := namedAddresses(service)
	if len(named) < len(kept) {
		named = kept
	}
	if err := n.verify(ctx, service, named[len(kept):]); err != nil {
		return nil, err
	}
	families := n.familiesOf(service)
	if len(named) >= len(families) {
		return begin()
	}
	choice, err := n.choiceFor(ctx, service)
	if err != nil {
		return nil, err
	}
	if choice.isFree() || dry { // upstream does not choose for a dry run either
		return begin()
	}
	tried := sets.New[netip.Addr]()
	for {
		all := slices.Clone(named)
		for _, part := range families[len(named):] {
			address := choice.in(part).pick(func(a netip.Addr) bool { return n.isTaken(a) || tried.Has(a) })
			if !address.IsValid() {
				return nil, choice.in(part).exhausted(service)
			}
			all = append(all, address.String())
		}
		service.Spec.ClusterIP, service.Spec.ClusterIPs = all[0], all
		end, err := begin()
		lost := lostTo(err, all[len(named):])
		if len(lost) == 0 {
			return end, err
		}
		tried.Insert(lost...)
	}
}

// isTaken reports whether an address is allocated.
func (n *networkAddresses) isTaken(address netip.Addr) bool {
	_, err := n.taken.Get(address.String())
	return err == nil
}

// lostTo returns the addresses that another request was faster to allocate.
func lostTo(err error, addresses []string) []netip.Addr {
	if err == nil {
		return nil
	}
	var lost []netip.Addr
	for _, text := range addresses {
		// As upstream's registry describes the error, which it does not wrap.
		if strings.Contains(err.Error(), "IP "+text+": "+ipallocator.ErrAllocated.Error()) {
			lost = append(lost, netip.MustParseAddr(text))
		}
	}
	return lost
}

// familiesOf returns the ranges of which a Service needs an address each, in the
// order of its addresses.
func (n *networkAddresses) familiesOf(service *api.Service) []netip.Prefix {
	ordered := slices.Clone(n.parts)
	if wanted := service.Spec.IPFamilies; len(wanted) > 0 && len(ordered) > 1 && familyOf(ordered[0]) != wanted[0] {
		slices.Reverse(ordered)
	}
	if policy := service.Spec.IPFamilyPolicy; policy == nil || *policy == api.IPFamilyPolicySingleStack {
		return ordered[:min(len(ordered), 1)]
	}
	return ordered
}

// familyOf returns the IP family of a range.
func familyOf(part netip.Prefix) api.IPFamily {
	if part.Addr().Is4() {
		return api.IPv4Protocol
	}
	return api.IPv6Protocol
}

// namedAddresses returns the addresses that a Service names.
func namedAddresses(service *api.Service) []string {
	if len(service.Spec.ClusterIPs) == 0 && service.Spec.ClusterIP != "" {
		return []string{service.Spec.ClusterIP}
	}
	return service.Spec.ClusterIPs
}

// verify returns an error if a Service has or names an address that is not one
// of its network. Every Service may have those with a meaning in the cluster.
func (n *networkAddresses) verify(ctx context.Context, service *api.Service, named []string) error {
	if len(named) == 0 {
		return nil
	}
	choice, err := n.choiceFor(ctx, service)
	if err != nil || choice.isFree() {
		return err
	}
	for _, text := range named {
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue // upstream says what is wrong with it
		}
		for _, part := range n.parts {
			of := choice.in(part)
			if part.Addr().Is4() != address.Is4() || slices.Contains(of.fixed(), address) || of.has(address) {
				continue
			}
			return apierrors.NewInvalid(api.Kind("Service"), service.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "clusterIPs"), named, fmt.Sprintf(
					"%s is not an address of the Service's network; create the Service without an address, or with one of %s", address, of)),
			})
		}
	}
	return nil
}

// choiceFor returns the addresses that a Service may have.
func (n *networkAddresses) choiceFor(ctx context.Context, service *api.Service) (addressChoice, error) {
	choice := addressChoice{network: service.Labels[networkv1.Label]}
	found, err := n.ranges.List(labels.Everything())
	if err != nil {
		return choice, err
	}
	for _, each := range found {
		if !isOfNetwork(each) {
			continue
		}
		own := each.DeletionTimestamp == nil && isOf(each.Labels, choice.network)
		for _, text := range each.Spec.CIDRs {
			switch cidr, err := netip.ParsePrefix(text); {
			case err != nil:
			case own:
				choice.own = append(choice.own, cidr)
			default:
				choice.others = append(choice.others, cidr)
			}
		}
	}
	if len(choice.own) > 0 || choice.network == "" {
		return choice, nil
	}
	return choice, n.awaits(ctx, service, choice.network)
}

// isOf reports whether a ServiceCIDR with labels is of the network that a
// Service names.
func isOf(of labels.Set, network string) bool {
	return of[networkv1.Label] == network || network == "" && of.Has(networkv1.DefaultLabel)
}

// awaits returns an error if a network should have ranges, and has none yet. Its
// Service, which may be of the same manifest, would get another address.
func (n *networkAddresses) awaits(ctx context.Context, service *api.Service, name string) error {
	network, err := n.network(ctx, name)
	if err != nil || network == nil || !hasRanges(network) {
		return err
	}
	if network.Status.Phase == networkv1.PhaseFailed && network.Status.ObservedGeneration == network.Generation {
		return apierrors.NewForbidden(api.Resource("services"), service.Name, fmt.Errorf(
			"the phase of Network %s is Failed: %s", name, stateOf(network)))
	}
	return notRepaired(fmt.Errorf("the ranges of Service addresses of Network %s are not there yet: %s", name, stateOf(network)))
}

// hasRanges reports whether Services of a network get addresses of its ranges.
func hasRanges(n *networkv1.Network) bool {
	return n.Spec.HasServiceRanges() && n.DeletionTimestamp == nil
}

// stateOf returns what is known about the state of a network.
func stateOf(n *networkv1.Network) string {
	for _, c := range n.Status.Conditions {
		if c.Type == networkv1.ConditionReady {
			return c.Message
		}
	}
	return "it has no state yet"
}

// readNetwork returns a Network of the tenant; nil if there is none.
func (t *Tenant) readNetwork(ctx context.Context, name string) (*networkv1.Network, error) {
	raw, err := t.client.RESTClient().Get().
		AbsPath("apis", networkv1.GroupVersion.Group, networkv1.GroupVersion.Version, networkv1.Resource, name).
		SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the API of networks may not be there either
	}
	if err != nil {
		return nil, fmt.Errorf("read Network %s: %w", name, err)
	}
	network := &networkv1.Network{}
	if err := json.Unmarshal(raw, network); err != nil {
		return nil, fmt.Errorf("decode Network %s: %w", name, err)
	}
	return network, nil
}

// isOfNetwork reports whether a ServiceCIDR is of a network.
func isOfNetwork(cidr *networkingv1.ServiceCIDR) bool {
	return labels.Set(cidr.Labels).Has(networkv1.Label)
}

// clusterRanges are the ServiceCIDRs for upstream's allocator, without those of
// networks, which are within them: its dry run takes any one.
type clusterRanges struct {
	networkinginformers.ServiceCIDRInformer
}

// Lister implements the informer.
func (r clusterRanges) Lister() networkinglisters.ServiceCIDRLister {
	return clusterRangeLister{r.ServiceCIDRInformer.Lister()}
}

type clusterRangeLister struct {
	networkinglisters.ServiceCIDRLister
}

// List implements the lister.
func (l clusterRangeLister) List(selector labels.Selector) ([]*networkingv1.ServiceCIDR, error) {
	found, err := l.ServiceCIDRLister.List(selector)
	return slices.DeleteFunc(found, isOfNetwork), err
}
