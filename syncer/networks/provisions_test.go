package networks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/plugins/network/flat"
)

// cloud is a provider that keeps what it has.
type cloud struct {
	has map[string]types.UID
	err error
}

func (c *cloud) Ensure(_ context.Context, n network.Network) (network.State, error) {
	if c.err == nil {
		c.has[n.Tenant.Key+"/"+n.Name] = n.UID
	}
	return network.State{Ready: true}, c.err
}

func (c *cloud) Delete(_ context.Context, n network.Network) (bool, error) {
	if c.err == nil {
		delete(c.has, n.Tenant.Key+"/"+n.Name)
	}
	return true, c.err
}

func (*cloud) PreparePod(context.Context, network.Pod) (network.Attachment, error) {
	return network.Attachment{Ready: true}, nil
}

func (*cloud) ReleasePod(context.Context, network.Pod) (bool, error) { return true, nil }

// memory is a vault.
type memory struct {
	stored records
	err    error
	writes int
}

func (m *memory) read(context.Context) (records, error) {
	all := records{}
	maps.Copy(all, m.stored)
	return all, m.err
}

func (m *memory) write(_ context.Context, all records) error {
	m.writes++
	if m.err == nil {
		m.stored = maps.Clone(all)
	}
	return m.err
}

// offering returns the networks of tenant red at flat and at a cloud of type
// vpc.
func offering(t *testing.T, c *cloud, v *memory) *provisions {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	providers, err := NewProviders(ProviderOptions{Logger: logr.Discard(), Metrics: metrics}, flat.Registration(),
		network.Registration{Type: "vpc", New: func(network.Environment) (network.Provider, error) { return c, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return &provisions{
		providers: providers, vault: v, tenant: plugins.Tenant{Key: "red"}, interval: time.Minute, wake: func() {}, calls: map[string]*call{},
	}
}

// round does what a reconcile does for networks without pods that are all new.
func (s *provisions) round(t *testing.T, networks ...networkv1.Network) error {
	t.Helper()
	if err := s.load(t.Context()); err != nil {
		return err
	}
	if err := s.handOver(t.Context(), networks); err != nil {
		return err
	}
	for i := range networks {
		s.ensure(t.Context(), &networks[i])
	}
	synctest.Wait()
	return nil
}

func identified(uid types.UID) change { return func(n *networkv1.Network) { n.UID = uid } }

func named(name string) change { return func(n *networkv1.Network) { n.Name = name } }

func TestNetworksAreRecordedBeforeTheirProvidersKnowThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, v := &cloud{has: map[string]types.UID{}}, &memory{err: errors.New("no answer")}
		s := offering(t, c, v)
		vpc, plain := networkOf("vpc", identified("1")), networkOf("flat", named("net-2"))
		s.records = records{}
		if err := s.round(t, *vpc, *plain); err == nil || len(c.has) != 0 || s.records != nil {
			t.Fatalf("without a record: %v, and the provider has %v", err, c.has)
		}
		v.err = nil
		if err := s.round(t, *vpc, *plain); err != nil {
			t.Fatal(err)
		}
		if c.has["red/net-1"] != "1" || len(v.stored) != 1 || v.stored["net-1"] != recordOf(vpc) {
			t.Errorf("the provider has %v, recorded is %v", c.has, v.stored)
		}
		for _, n := range []*networkv1.Network{vpc, plain} {
			if p := s.about(n); p.latest == nil || !p.latest.isFinal() || p.taken || p.handed != (n == vpc) {
				t.Errorf("%s: %+v", n.Name, p)
			}
		}
		if n := testutil.ToFloat64(s.providers.metrics.calls.WithLabelValues("vpc", "Ensure", "done")); n != 1 {
			t.Errorf("%v calls were counted", n)
		}
	})
}

// TestANetworkIsForgottenWhenItsProviderHasDeletedIt: also if another one has its
// name meanwhile, or it has none of its finalizers any more.
func TestANetworkIsForgottenWhenItsProviderHasDeletedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, v := &cloud{has: map[string]types.UID{"red/net-1": "1"}}, &memory{}
		v.stored = records{"net-1": {UID: "1", Type: "vpc", VPCID: "vpc-1"}}
		s := offering(t, c, v)
		later := networkOf("vpc", identified("2"))
		if err := s.round(t, *later); err != nil {
			t.Fatal(err)
		}
		if p := s.about(later); !p.taken || p.handed || p.latest != nil || c.has["red/net-1"] != "1" {
			t.Fatalf("the later network: %+v, and the provider has %v", p, c.has)
		}
		c.err = errors.New("no cloud")
		none := func(string) bool { return false }
		s.remove(t.Context(), "net-1")
		synctest.Wait()
		if err := s.forget(t.Context(), none); err != nil || len(v.stored) != 1 {
			t.Fatalf("a failed deletion: %v, recorded is %v", err, v.stored)
		}
		c.err = nil
		s.renew("net-1")
		s.remove(t.Context(), "net-1")
		synctest.Wait()
		if err := s.forget(t.Context(), none); err != nil || len(v.stored) != 0 || len(c.has) != 0 || len(s.calls) != 0 {
			t.Fatalf("%v, recorded is %v, the provider has %v", err, v.stored, c.has)
		}
		if err := s.round(t, *later); err != nil || c.has["red/net-1"] != "2" || !s.about(later).handed {
			t.Errorf("%v, the provider has %v", err, c.has)
		}
	})
}

func TestARecordedNetworkWithoutAProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := offering(t, &cloud{}, &memory{stored: records{"net-1": {UID: "1", Type: "mizar"}}})
		if err := s.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.remove(t.Context(), "net-1")
		synctest.Wait()
		if latest, _ := s.called("net-1").answer(); latest == nil || !errors.Is(latest.err, errNotOffered) {
			t.Errorf("the answer is %v", latest)
		}
		if err := s.forget(t.Context(), func(string) bool { return false }); err != nil || len(s.records) != 1 {
			t.Errorf("%v, recorded is %v", err, s.records)
		}
	})
}

// TestRecordsAreBounded: a tenant that creates and deletes networks faster than
// their provider can hands over no more of them.
func TestRecordsAreBounded(t *testing.T) {
	v := &memory{}
	s := offering(t, &cloud{has: map[string]types.UID{}}, v)
	var networks []networkv1.Network
	for i := range maxNetworks + 10 {
		networks = append(networks, *networkOf("vpc", named(fmt.Sprintf("n-%d", i)), identified("1")))
	}
	if err := errors.Join(s.load(t.Context()), s.handOver(t.Context(), networks)); err != nil {
		t.Fatal(err)
	}
	if len(v.stored) != maxNetworks || v.writes != 1 {
		t.Errorf("%d networks are recorded, by %d writes", len(v.stored), v.writes)
	}
	if p := s.about(&networks[maxNetworks]); !p.full {
		t.Errorf("a further one: %+v", p)
	}
	if got := decide(&networks[maxNetworks], facts{provided: s.about(&networks[maxNetworks])}); got.reason != networkv1.ReasonTooManyNetworks {
		t.Errorf("a further one is decided: %+v", got)
	}
}

func TestChangedRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, woken := &cloud{has: map[string]types.UID{}}, 0
		s := offering(t, c, &memory{})
		s.wake = func() { woken++ }
		end := s.providers.serve("red", s)
		vpc := networkOf("vpc", identified("1"))
		if err := s.round(t, *vpc); err != nil || woken != 1 {
			t.Fatalf("%v, woken %d times", err, woken)
		}
		c.err = errors.New("it broke")
		for _, of := range [][2]string{{"blue", "net-1"}, {"red", "other"}} {
			if s.providers.changed(of[0], of[1]); woken != 1 {
				t.Errorf("a change of %v woke it", of)
			}
		}
		s.providers.changed("red", "net-1")
		if err := s.round(t, *vpc); err != nil || woken != 3 || s.about(vpc).latest.err == nil {
			t.Errorf("%v, woken %d times, the answer is %v", err, woken, s.about(vpc).latest)
		}
		end()
		if s.providers.changed("red", "net-1"); woken != 3 {
			t.Error("a change of a tenant that is not served woke it")
		}
	})
}

func TestStoredRecords(t *testing.T) {
	secret := recordSecret(metav1.ObjectMeta{Finalizers: []string{"example.com/other"}})
	want := records{"net-1": {UID: "1", Type: "vpc", VPCID: "vpc-1"}, "net-2": {UID: "2", Type: "mizar"}}
	if err := want.store(secret); err != nil {
		t.Fatal(err)
	}
	got, err := parseRecords(secret)
	if err != nil || !maps.Equal(got, want) || !slices.Contains(secret.Finalizers, networkv1.Finalizer) {
		t.Errorf("%v, got %v with the finalizers %v", err, got, secret.Finalizers)
	}
	if err := (records{}).store(secret); err != nil || len(secret.Data) != 0 || !slices.Equal(secret.Finalizers, []string{"example.com/other"}) {
		t.Errorf("%v, empty records have the finalizers %v", err, secret.Finalizers)
	}
	secret.Data = map[string][]byte{"net-1": []byte("no JSON")}
	if _, err := parseRecords(secret); err == nil {
		t.Error("no JSON is taken for a record")
	}
}
