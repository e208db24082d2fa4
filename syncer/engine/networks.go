package engine

import (
	"context"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// newNetworkSyncer returns the syncer of the networks of an engaged tenant, which
// records in Secrets what it has handed to providers.
func newNetworkSyncer(s *engagement, secrets *kinds.Kind) *networks.Syncer {
	tenant := pluginTenant(s.Identity())
	var within []netip.Prefix
	if s.Cluster.Hosted() {
		within = s.Identity().ServiceRanges()
	}
	return networks.NewSyncer(s.shared.networks, s.shared.providers, s.networks, s.shared.interval, networks.Tenant{
		Tenant: tenant, Cluster: s.Cluster, ServiceRanges: within, Pods: s.podsByNetwork, Wake: s.wakeNetwork,
		Review: s.reviewNetworks, Release: s.owned.Release,
		Vault: &networks.Vault{Reader: s.API.GetAPIReader(), Guard: s.Guard, Kind: secrets, Tenant: tenant},
	})
}

// podsByNetwork counts the tenant's copies that use each network.
func (s *engagement) podsByNetwork(ctx context.Context) (map[string]int, error) {
	found := map[string]int{}
	for k := range s.SyncedKinds() {
		if k.Down == nil || k.Down.Network == nil || k.Down.Mirror == nil {
			continue
		}
		err := s.CacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.Lane(), func(obj client.Object) {
			// One that has ended uses its network until its provider has released it.
			if !k.Down.Mirror.Ended(obj) || controllerutil.ContainsFinalizer(obj, networkv1.Finalizer) {
				found[obj.GetLabels()[networkv1.Label]]++
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// wakeNetwork enqueues the tenant's objects that name a network.
func (s *engagement) wakeNetwork(name string) {
	s.enqueueNaming(name, func(k *kinds.Kind) bool { return !k.Down.AnyNetwork })
}

// reviewNetworks enqueues what depends on the specs of networks: the copies of
// policies that name them, and the syncer's own policies in each namespace.
func (s *engagement) reviewNetworks(names []string) {
	for _, name := range names {
		s.enqueueNaming(name, func(k *kinds.Kind) bool { return k.Down.AnyNetwork })
	}
	spaces := s.Builtin[session.NamespaceKind]
	// As above, the patrol would find the namespaces.
	_ = s.EachSuperKey(s.Ctx, spaces, func(key client.ObjectKey) { s.Enqueue(s.Request(spaces, key), queue.PriorityHigh) })
}

// enqueueNaming enqueues the tenant's objects of some kinds that name a network.
func (s *engagement) enqueueNaming(name string, of func(*kinds.Kind) bool) {
	named := []string{name}
	if s.networks.Name("") == name {
		named = append(named, "")
	}
	for k := range s.SyncedKinds() {
		if k.Down == nil || k.Down.Network == nil || !of(k) {
			continue
		}
		for _, network := range named {
			// Reading a cache that has synced does not fail. If it did, the patrol
			// would find the objects.
			_ = s.Cache.EachKeyBy(s.Ctx, k, caches.IndexNetwork, network, func(key client.ObjectKey) {
				s.Enqueue(s.Request(k, key), queue.PriorityNormal)
			})
		}
	}
}
