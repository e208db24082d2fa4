package networktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/plugins/network/flat"
)

// good is a provider that fulfils the contract, and keeps what it has in a cloud.
type good struct{ *cloud }

// cloud has networks and pods, and gives each a number.
type cloud struct {
	mu   sync.Mutex
	last int
	has  map[string]int
}

func (c *cloud) make(of string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.has[of] == 0 {
		c.last++
		c.has[of] = c.last
	}
	return c.has[of]
}

func (c *cloud) remove(of string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.has, of)
}

func key(n network.Network) string { return n.Tenant.Key + "/" + n.Name }

func (g good) Ensure(_ context.Context, n network.Network) (network.State, error) {
	if n.Spec.VPCID == "none" {
		return network.State{}, &plugins.RejectionError{Reason: "VPCNotFound", Message: "the VPC does not exist"}
	}
	return network.State{Ready: true, DNSServiceIP: fmt.Sprintf("192.0.2.%d", g.make(key(n)))}, nil
}

func (g good) Delete(_ context.Context, n network.Network) (bool, error) {
	g.remove(key(n))
	return true, nil
}

func (g good) PreparePod(_ context.Context, p network.Pod) (network.Attachment, error) {
	return network.Attachment{Ready: true, CNIArgs: fmt.Sprint(g.make(string(p.UID)))}, nil
}

func (g good) ReleasePod(_ context.Context, p network.Pod) (bool, error) {
	g.remove(string(p.UID))
	return true, nil
}

// caseOf returns a case of a provider, with a cloud that outlives it.
func caseOf(of func(good) network.Provider) Case {
	c, serial := &cloud{has: map[string]int{}}, 0
	next := func(vpc string) network.Network {
		serial++
		name := fmt.Sprintf("net-%d", serial)
		return network.Network{
			Tenant: plugins.Tenant{Key: "red"}, Name: name, UID: types.UID(name), Spec: networkv1.NetworkSpec{Type: "vpc", VPCID: vpc},
		}
	}
	return Case{
		New:      func(context.Context) (network.Provider, error) { return of(good{c}), nil },
		Network:  func() network.Network { return next("vpc-1") },
		Invalid:  func() network.Network { return next("none") },
		Patience: 100 * time.Millisecond,
	}
}

func TestAGoodProvider(t *testing.T) {
	Run(t, caseOf(func(g good) network.Provider { return g }))
}

func TestFlat(t *testing.T) {
	registration := flat.Registration()
	n := network.Network{Tenant: plugins.Tenant{Key: "red"}, Name: "default", Spec: networkv1.NetworkSpec{Type: "flat"}}
	Run(t, Case{
		New:     func(context.Context) (network.Provider, error) { return registration.New(network.Environment{}) },
		Network: func() network.Network { return n }, Passive: registration.Passive,
	})
}

// Each of these providers violates the contract in one way.
type (
	never   struct{ good }
	forgets struct {
		good

		own *cloud
	}
	shares  struct{ good }
	mixes   struct{ good }
	changes struct{ good }
	keeps   struct{ good }
	leaks   struct{ good }
	vague   struct{ good }
)

func (never) Ensure(context.Context, network.Network) (network.State, error) {
	return network.State{Message: "soon"}, nil
}

func (f forgets) PreparePod(ctx context.Context, p network.Pod) (network.Attachment, error) {
	f.make("another")
	return good{f.own}.PreparePod(ctx, p)
}

func (s shares) Ensure(ctx context.Context, n network.Network) (network.State, error) {
	n.Tenant.Key = ""
	return s.good.Ensure(ctx, n)
}

func (s shares) Delete(ctx context.Context, n network.Network) (bool, error) {
	n.Tenant.Key = ""
	return s.good.Delete(ctx, n)
}

func (m mixes) PreparePod(context.Context, network.Pod) (network.Attachment, error) {
	return network.Attachment{Ready: true, CNIArgs: "all"}, nil
}

func (c changes) Ensure(ctx context.Context, n network.Network) (network.State, error) {
	n.Spec.Service = nil
	c.remove(key(n))
	return c.good.Ensure(ctx, n)
}

func (keeps) Delete(context.Context, network.Network) (bool, error) {
	return false, errors.New("not found")
}

func (leaks) ReleasePod(context.Context, network.Pod) (bool, error) { return false, nil }

func (vague) Ensure(_ context.Context, n network.Network) (network.State, error) {
	if n.Spec.VPCID == "none" {
		return network.State{}, &plugins.RejectionError{Reason: "not found", Message: "no"}
	}
	return network.State{Ready: true}, nil
}

func TestBadProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		of   func(good) network.Provider
		want string
	}{
		"never ready":                   {func(g good) network.Provider { return never{g} }, `is not ready ("soon")`},
		"forgets at a restart":          {func(g good) network.Provider { return forgets{g, &cloud{last: g.last, has: map[string]int{}}} }, "after a restart"},
		"one network for two tenants":   {func(g good) network.Provider { return shares{g} }, "the deletion of a network changes that of another tenant"},
		"one address for two pods":      {func(g good) network.Provider { return mixes{g} }, "two pods have the same arguments"},
		"another address at each call":  {func(g good) network.Provider { return changes{g} }, "the state of a network that is ready changes"},
		"cannot delete":                 {func(g good) network.Provider { return keeps{g} }, "is not deleted"},
		"cannot release":                {func(g good) network.Provider { return leaks{g} }, "is not released"},
		"rejects without a reason":      {func(g good) network.Provider { return vague{g} }, "the reason must be a word"},
		"makes no provider in its case": {func(good) network.Provider { return nil }, "it returns no provider"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(t.Context(), caseOf(tc.of))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
