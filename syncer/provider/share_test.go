package provider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// part is a share of the tenants with these names.
type part struct{ keeps, begins string }

func (p part) Keeps(vc types.NamespacedName) bool  { return vc.Name == p.keeps }
func (p part) Begins(vc types.NamespacedName) bool { return vc.Name == p.begins }

var red, blue = types.NamespacedName{Name: "red"}, types.NamespacedName{Name: "blue"}

func sharingProvider() *Provider {
	return &Provider{
		shared:  make(chan struct{}, 1),
		tenants: map[types.NamespacedName]*tenant{},
		names:   map[multicluster.ClusterName]types.NamespacedName{},
		visits:  map[types.NamespacedName]*visit{},

		sleepers: newSleepers(0),
	}
}

// engagedAs engages a tenant without a connection, and returns the context of
// its engagement.
func engagedAs(t *testing.T, p *Provider, vc types.NamespacedName) (context.Context, *Cluster) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Cluster{work: newWork()}
	c.tenant.Store(&translate.Tenant{Key: vc.Name})
	p.tenants[vc] = &tenant{cluster: c, cancel: cancel}
	return ctx, c
}

func TestWhoIsServed(t *testing.T) {
	p := sharingProvider()
	engagedAs(t, p, red)
	for name, tc := range map[string]struct {
		share     Share
		red, blue bool
	}{
		"all without a share":            {nil, true, true},
		"a served tenant is kept":        {part{keeps: "red"}, true, false},
		"a served tenant need not begin": {part{begins: "red"}, false, false},
		"another tenant has to begin":    {part{keeps: "blue"}, false, false},
		"another tenant begins":          {part{keeps: "red", begins: "blue"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			p.share = tc.share
			for vc, want := range map[types.NamespacedName]bool{red: tc.red, blue: tc.blue} {
				_, mine, end := p.visit(t.Context(), vc)
				end()
				if mine != want {
					t.Errorf("%s is served: %t", vc.Name, mine)
				}
			}
		})
	}
}

// TestServeWaitsForWhatIsInFlight checks that Serve waits for the reconcile of
// a VirtualCluster, and for the work for its tenant, if it is not kept.
func TestServeWaitsForWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sharingProvider()
		redCtx, cluster := engagedAs(t, p, red)
		blueCtx, _ := engagedAs(t, p, blue)
		release, ok := cluster.Hold()
		if !ok {
			t.Fatal("no work can begin for an engaged tenant")
		}
		visiting, _, end := p.visit(t.Context(), red)

		served := make(chan error, 1)
		go func() { served <- p.Serve(t.Context(), part{keeps: "blue"}) }()
		for what, finish := range map[string]func(){"the visit": end, "the work": release} {
			synctest.Wait()
			if redCtx.Err() == nil || visiting.Err() == nil && what == "the visit" {
				t.Error("work in flight is not cancelled")
			}
			if len(served) > 0 {
				t.Fatalf("it does not wait for %s", what)
			}
			if _, ok := cluster.Hold(); ok {
				t.Error("work can begin for a tenant that is being disengaged")
			}
			finish()
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if blueCtx.Err() != nil || p.engaged(blue) == nil || p.engaged(red) != nil {
			t.Error("another tenant was disengaged")
		}
		if len(p.shared) == 0 {
			t.Error("the VirtualClusters are not requeued")
		}
	})
}

func TestServeDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sharingProvider()
		_, cluster := engagedAs(t, p, red)
		cluster.Hold()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Serve(ctx, part{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAVisitThatIsOverEngagesNobody checks a visit that ends after Serve has
// returned, when another process may serve the tenant.
func TestAVisitThatIsOverEngagesNobody(t *testing.T) {
	p := sharingProvider()
	visiting, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Cluster{work: newWork()}
	c.tenant.Store(&translate.Tenant{Key: "red"})
	if err := p.add(t.Context(), visiting, red, &tenant{cluster: c}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if p.engaged(red) != nil {
		t.Error("the tenant is engaged")
	}
}
