package host

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

// closeTimeout limits how long the control planes of a store take to stop.
const closeTimeout = 30 * time.Second

// store is a ControlPlaneStore that this process is connected to.
type store struct {
	endpoints   []string
	bytes       int64
	credentials *storeCredentials
	// host runs the control planes, and planes decides which of them.
	host   *hosted.Host
	planes *provisioner.Hosted
}

// uses reports whether a store is one with this configuration.
func (s *store) uses(endpoints []string, bytesOfStore int64, credentials *storeCredentials) bool {
	return slices.Equal(s.endpoints, endpoints) && s.bytes == bytesOfStore && bytes.Equal(s.credentials.authority, credentials.authority)
}

// stores are the stores that this process is connected to. It owns their
// goroutines.
type stores struct {
	// start connects to an etcd.
	start func(ctx context.Context, name string, etcd hosted.RemoteStore) (*hosted.Host, error)
	// newPlanes returns what decides which control planes of a host run.
	newPlanes func(context.Context, *hosted.Host) *provisioner.Hosted
	// changed gets control planes to reconcile, and lost the stores that ended by
	// themselves.
	changed chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]
	lost    chan event.TypedGenericEvent[*tenancyv1alpha1.ControlPlaneStore]
	log     logr.Logger

	ctx  context.Context // of all stores
	work sync.WaitGroup

	mu   sync.Mutex
	open map[string]*store
}

// get returns a store that this process is connected to.
func (s *stores) get(name string) (*store, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.open[name]
	return found, ok
}

// all returns the stores that this process is connected to.
func (s *stores) all() []*store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.open))
}

// names returns the names of the stores that this process is connected to.
func (s *stores) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.open))
}

// retire stops a control plane that another replica serves by now.
func (s *stores) retire(controlPlane string) {
	for _, in := range s.all() {
		in.planes.Retire(controlPlane)
	}
}

// handedOver returns how many control planes wait for the replicas that take them
// over.
func (s *stores) handedOver() int {
	count := 0
	for _, in := range s.all() {
		count += in.planes.HandedOver()
	}
	return count
}

// connect connects to a store, or disconnects and connects again if it is
// configured otherwise now.
func (s *stores) connect(name string, endpoints []string, bytesOfStore int64, credentials *storeCredentials) (*store, error) {
	if found, ok := s.get(name); ok {
		if found.uses(endpoints, bytesOfStore, credentials) {
			found.credentials.client.Store(credentials.client.Load())
			return found, nil
		}
		if err := s.disconnect(name); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	etcd := hosted.RemoteStore{Endpoints: endpoints, TLS: credentials.config(), Bytes: bytesOfStore}
	host, err := s.start(ctx, name, etcd)
	if err != nil {
		cancel()
		return nil, err
	}
	opened := &store{
		endpoints: endpoints, bytes: bytesOfStore, credentials: credentials,
		host: host, planes: s.newPlanes(ctx, host),
	}
	s.mu.Lock()
	s.open[name] = opened
	s.mu.Unlock()
	s.work.Go(func() {
		s.follow(ctx, name, opened)
		cancel()
		opened.planes.Wait()
	})
	return opened, nil
}

// follow passes on what concerns the control planes of a store until it ends.
func (s *stores) follow(ctx context.Context, name string, of *store) {
	for {
		select {
		case changed := <-of.planes.Events():
			select {
			case s.changed <- changed:
			case <-ctx.Done():
			}
		case <-of.host.Done():
			s.forget(name, of)
			if err := of.host.Err(); err != nil {
				s.log.Error(err, "Lost a store, connecting again", "store", name)
			}
			gone := &tenancyv1alpha1.ControlPlaneStore{}
			gone.Name = name
			select {
			case s.lost <- event.TypedGenericEvent[*tenancyv1alpha1.ControlPlaneStore]{Object: gone}:
			case <-s.ctx.Done():
			}
			return
		}
	}
}

func (s *stores) forget(name string, ended *store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name] == ended {
		delete(s.open, name)
	}
}

// disconnect stops the control planes of a store. It is not an error if there is
// no such store.
func (s *stores) disconnect(name string) error {
	found, ok := s.get(name)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, closeTimeout)
	defer cancel()
	if err := found.host.Stop(ctx); err != nil {
		return fmt.Errorf("disconnect from store %s: %w", name, err)
	}
	s.forget(name, found)
	return nil
}

// wait returns when all stores have ended, after the end of their context.
func (s *stores) wait() { s.work.Wait() }
