package chain_test

import (
	"context"
	"net"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// brokenNetwork panics when something connects.
type brokenNetwork struct{}

// Dialer implements egress.Network.
func (brokenNetwork) Dialer(egress.Purpose) egress.Dial {
	return func(context.Context, string, string) (net.Conn, error) { panic("a broken network") }
}

// TestBrokenNetwork: clients of webhooks and of aggregated APIs dial in
// goroutines of net/http. Another tenant's webhook works.
func TestBrokenNetwork(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	of := newHook(t, labels("blue"))
	_, red := addWithNetwork(t, c, "red", brokenNetwork{})
	_, blue := addWithHook(t, c, "blue", of)
	for _, client := range []kubernetes.Interface{red, blue} {
		createMutating(t, client, admissionregistrationv1.MutatingWebhook{ClientConfig: of.clientConfig()})
	}
	g.Expect(createConfigMap(t, red, "x")).To(MatchError(ContainSubstring("a broken network")))
	g.Expect(labelOf(t, blue, "team", "x")).To(Equal("blue"))
}
