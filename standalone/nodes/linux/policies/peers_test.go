package policies

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func block(cidr string, except ...string) peer {
	return peer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

// TestPeers: the addresses that the peers of a policy in the shop come to.
func TestPeers(t *testing.T) {
	every := &metav1.LabelSelector{}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	for name, c := range map[string]struct {
		peers []peer
		want  []string
		fails bool
	}{
		"no peers match all":                      {nil, []string{"0.0.0.0-255.255.255.255"}, false},
		"pods of the policy's namespace":          {[]peer{{PodSelector: by("app", "web")}}, []string{"10.0.0.1-10.0.0.1"}, false},
		"every pod of that":                       {[]peer{{PodSelector: every}}, []string{"10.0.0.1-10.0.0.2"}, false},
		"pods of another namespace":               {[]peer{{NamespaceSelector: by("tier", "back")}}, []string{"10.0.0.3-10.0.0.3"}, false},
		"pods of every namespace":                 {[]peer{{NamespaceSelector: every}}, []string{"10.0.0.1-10.0.0.3"}, false},
		"some pods of every namespace":            {[]peer{{NamespaceSelector: every, PodSelector: by("app", "web")}}, []string{"10.0.0.1-10.0.0.1", "10.0.0.3-10.0.0.3"}, false},
		"no pods":                                 {[]peer{{PodSelector: by("app", "none")}}, nil, false},
		"no namespace":                            {[]peer{{NamespaceSelector: by("tier", "none")}}, nil, false},
		"a block":                                 {[]peer{block("192.0.2.0/30")}, []string{"192.0.2.0-192.0.2.3"}, false},
		"a block with a hole":                     {[]peer{block("192.0.2.0/30", "192.0.2.1/32")}, []string{"192.0.2.0-192.0.2.0", "192.0.2.2-192.0.2.3"}, false},
		"a block that is a hole":                  {[]peer{block("192.0.2.0/30", "192.0.2.0/30")}, nil, false},
		"the hole of one block in another":        {[]peer{block("192.0.2.0/30", "192.0.2.1/32"), block("192.0.2.1/32")}, []string{"192.0.2.0-192.0.2.3"}, false},
		"a block of IPv6, which pods do not have": {[]peer{block("2001:db8::/32")}, nil, false},
		"a block with leading zeros":              {[]peer{block("192.000.002.0/30")}, []string{"192.0.2.0-192.0.2.3"}, false},
		"a block that is mapped to IPv6":          {[]peer{block("::ffff:192.0.2.0/126")}, []string{"192.0.2.0-192.0.2.3"}, false},
		"a hole that is mapped to IPv6":           {[]peer{block("192.0.2.0/30", "::ffff:192.0.2.2/127")}, []string{"192.0.2.0-192.0.2.1"}, false},
		"a block of more than the mapped":         {[]peer{block("::ffff:0.0.0.0/95")}, nil, false},
		"a block with bits behind the prefix":     {[]peer{block("192.0.2.3/30")}, []string{"192.0.2.0-192.0.2.3"}, false},
		"pods and a block":                        {[]peer{{PodSelector: by("app", "cart")}, block("10.0.0.3/32")}, []string{"10.0.0.2-10.0.0.3"}, false},
		"no block":                                {[]peer{block("192.0.2.0")}, nil, true},
		"no hole":                                 {[]peer{block("192.0.2.0/24", "here")}, nil, true},
		"no selector of pods":                     {[]peer{{PodSelector: wrong}}, nil, true},
		"no selector of namespaces":               {[]peer{{NamespaceSelector: wrong}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := addressesOf(c.peers)
			if (err != nil) != c.fails || !slices.Equal(got, c.want) {
				t.Errorf("got %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

func addressesOf(list []peer) ([]string, error) {
	found, err := cluster.indexed().peers("shop", list)
	if err != nil {
		return nil, err
	}
	ranges, err := found.addresses()
	var all []string
	for _, each := range ranges {
		all = append(all, fmt.Sprint(each))
	}
	return all, err
}

// TestBlockSetIsOfIPv4: addresses that pods do not have are none.
func TestBlockSetIsOfIPv4(t *testing.T) {
	set, err := blockSet(networkingv1.IPBlock{CIDR: "::/0"})
	if err != nil || set.Contains(netip.IPv6LinkLocalAllNodes()) || len(set.Ranges()) > 0 {
		t.Errorf("got %v (%v)", set, err)
	}
}
