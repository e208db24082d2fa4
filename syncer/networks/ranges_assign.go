package networks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// claim is a range of Service addresses of a network.
type claim struct {
	network string
	cidr    netip.Prefix
}

// assign returns the ranges that networks get, and why others get none. A network
// keeps a range that it holds; otherwise the first of the networks gets it.
func assign(networks []networkv1.Network, holds func(claim) bool, within []netip.Prefix) (
	granted []claim, rejected map[string]*plugins.RejectionError,
) {
	rejected = map[string]*plugins.RejectionError{}
	for _, held := range []bool{true, false} {
		for i := range networks {
			n := &networks[i]
			for _, text := range n.Spec.Service.CIDRs[:min(len(n.Spec.Service.CIDRs), maxRanges)] {
				cidr, _ := netip.ParsePrefix(string(text)) // an invalid one is outside
				c := claim{n.Name, cidr}
				if holds(c) != held {
					continue
				}
				if why := reject(c, string(text), granted, within); why != nil {
					rejected[n.Name] = why
					continue
				}
				granted = append(granted, c)
			}
		}
	}
	return granted, rejected
}

// reject returns why a network does not get a range; nil if it does.
func reject(c claim, text string, granted []claim, within []netip.Prefix) *plugins.RejectionError {
	contains := func(whole netip.Prefix) bool { return whole.Bits() <= c.cidr.Bits() && whole.Contains(c.cidr.Addr()) }
	if !c.cidr.IsValid() || c.cidr != c.cidr.Masked() || !slices.ContainsFunc(within, contains) {
		return &plugins.RejectionError{
			Reason: networkv1.ReasonServiceRangesOutside,
			Message: fmt.Sprintf("the range %.43s in spec.service.cidrs is not a part of %s, the Service addresses of this cluster; "+
				"choose a part of that", text, textOf(within)),
		}
	}
	for _, other := range granted {
		if other.cidr.Overlaps(c.cidr) {
			return &plugins.RejectionError{
				Reason: networkv1.ReasonServiceRangesOverlap,
				Message: fmt.Sprintf("the range %s in spec.service.cidrs overlaps with %s of Network %s; choose another one",
					c.cidr, other.cidr, other.network),
			}
		}
	}
	return nil
}

// textOf returns ranges as text.
func textOf(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, cidr := range ranges {
		texts[i] = cidr.String()
	}
	return strings.Join(texts, " or ")
}
