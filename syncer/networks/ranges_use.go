package networks

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
)

// maxStrays is the maximum of Services that a condition names.
const maxStrays = 3

// use is how Services use the ranges of networks.
type use struct {
	claims []claim // by address; they do not overlap
	fixed  []netip.Addr
	// free is the number of addresses that are left to each network with ranges.
	free map[string]int
	// strays are the Services whose addresses are not as the ranges of a network
	// say.
	strays map[string][]string
}

// newUse returns the use of ranges by no Service.
func newUse(granted []claim, within []netip.Prefix) *use {
	u := &use{
		claims: slices.SortedFunc(slices.Values(granted), func(a, b claim) int { return a.cidr.Addr().Compare(b.cidr.Addr()) }),
		free:   map[string]int{}, strays: map[string][]string{},
	}
	for _, cidr := range within {
		u.fixed = append(u.fixed, addresses.In(cidr, addresses.Apiserver), addresses.In(cidr, addresses.DNS))
	}
	for _, c := range granted {
		u.free[c.network] += u.capacity(c.cidr)
	}
	return u
}

// capacity returns the number of addresses of a range that Services can have:
// not the first one, the last one of IPv4, and those with a meaning.
func (u *use) capacity(cidr netip.Prefix) int {
	size := 1<<(cidr.Addr().BitLen()-cidr.Bits()) - 1
	if cidr.Addr().Is4() {
		size--
	}
	for _, address := range u.fixed {
		if cidr.Contains(address) {
			size--
		}
	}
	return max(size, 0)
}

// count counts the addresses of a Service.
func (u *use) count(s *corev1.Service, first string) {
	network := cmp.Or(s.Labels[networkv1.Label], first)
	for address := range u.addressesOf(s) {
		if owner := u.owner(address); owner != "" {
			u.free[owner]--
		}
	}
	for _, address := range u.straying(s, network) {
		stray := fmt.Sprintf("%s/%s with %s", s.Namespace, s.Name, address)
		for _, of := range []string{u.owner(address), network} {
			if _, hasRanges := u.free[of]; hasRanges {
				u.strays[of] = append(u.strays[of], stray)
			}
		}
	}
}

// addressesOf returns the addresses of a Service, without those that each network
// can have. A headless one has none.
func (u *use) addressesOf(s *corev1.Service) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, text := range s.Spec.ClusterIPs {
			address, err := netip.ParseAddr(text)
			if err == nil && !slices.Contains(u.fixed, address) && !yield(address) {
				return
			}
		}
	}
}

// straying returns the addresses of a Service that are not those of its network.
func (u *use) straying(s *corev1.Service, network string) []netip.Addr {
	var found []netip.Addr
	_, hasRanges := u.free[network]
	for address := range u.addressesOf(s) {
		if owner := u.owner(address); owner != network && (owner != "" || hasRanges) {
			found = append(found, address)
		}
	}
	return found
}

// owner returns the network that has an address; empty if none has.
func (u *use) owner(address netip.Addr) string {
	i, found := slices.BinarySearchFunc(u.claims, address, func(c claim, a netip.Addr) int { return c.cidr.Addr().Compare(a) })
	if !found {
		i--
	}
	if i >= 0 && u.claims[i].cidr.Contains(address) {
		return u.claims[i].network
	}
	return ""
}

// condition returns the condition of a network; nil if it has no ranges.
func (u *use) condition(network string, generation int64) *metav1.Condition {
	free, hasRanges := u.free[network]
	if !hasRanges {
		return nil
	}
	c := &metav1.Condition{
		Type: networkv1.ConditionServiceRanges, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: networkv1.ReasonServiceRangesAvailable, Message: "addresses are left for Services of the network",
	}
	strays := u.strays[network]
	switch {
	case free <= 0:
		c.Status, c.Reason = metav1.ConditionFalse, networkv1.ReasonServiceRangesExhausted
		c.Message = "no address is left for Services of the network: delete Services, or add a range to spec.service.cidrs"
	case len(strays) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, networkv1.ReasonServiceRangeInUse
		c.Message = "Services have addresses that are not those of their network; create them again: " + listed(strays)
	}
	return c
}

// listed returns some of the names, and how many others there are.
func listed(all []string) string {
	slices.Sort(all)
	some := strings.Join(all[:min(len(all), maxStrays)], ", ")
	if more := len(all) - maxStrays; more > 0 {
		return fmt.Sprintf("%s, and %d more", some, more)
	}
	return some
}
