package chain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	iprepair "k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller"
	portrepair "k8s.io/kubernetes/pkg/registry/core/service/portallocator/controller"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	netutils "k8s.io/utils/net"

	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const (
	// repairInterval is the time between two checks of allocations. The third
	// one releases a node port that no Service has, which is later than a
	// request that allocates one can take.
	repairInterval = 40 * time.Second
	// repairTimeout limits how long the first write of a Service waits until
	// allocations are repaired.
	repairTimeout = 20 * time.Second
	// repairPause is the time between two attempts.
	repairPause = 100 * time.Millisecond
	// servicesLingering is the time for which allocators remain after a write
	// of a Service: long enough for repairs.
	servicesLingering = 3 * time.Minute
	readyInterval     = time.Millisecond
)

// services is the registry through which a tenant's Services are written, with
// the allocators of ClusterIPs and node ports. Upstream's controllers that
// repair allocations run as long as it exists: a crash or a removal of the
// tenant can leave a ClusterIP or a port allocated without its Service, and the
// tenant can delete the IPAddress of a Service. They have repaired once before
// anything is allocated. Without the registry nothing is allocated, so nothing
// has to be repaired either, and a tenant that writes no Services has none.
type services struct {
	registry *servicestore.REST
	status   *servicestore.StatusREST

	ips       map[api.IPFamily]ipallocator.Interface
	informers *views.Factory
	stop      chan struct{}
	repairs   sync.WaitGroup
}

// errUnrepaired means that upstream's controller has ended. It does so for good
// after most errors, such as a record that was deleted in the meantime.
var errUnrepaired = errors.New("the repair of allocations has failed")

// newServices creates the registry. It starts again when a repair fails, which
// upstream's servers leave to a restart.
func (c *Chain) newServices(t *Tenant) (*services, error) {
	ctx, cancel := context.WithTimeoutCause(t.life, repairTimeout, errors.New("allocations are not repaired yet"))
	defer cancel()
	for {
		s := &services{informers: t.views.NewFactory(), stop: make(chan struct{})}
		err := s.start(ctx, c, t)
		if err == nil {
			return s, nil
		}
		s.close()
		if !errors.Is(err, errUnrepaired) || !pause.For(ctx, repairPause) {
			return nil, fmt.Errorf("prepare the allocation of ClusterIPs and node ports: %w", err)
		}
	}
}

func (s *services) start(ctx context.Context, c *Chain, t *Tenant) error {
	if err := s.list(); err != nil {
		return err
	}
	family, err := s.newAllocators(t)
	if err != nil {
		return err
	}
	// Not ctx: a repair would repeat failed reads, and close waits for it.
	ports, record, err := c.newNodePorts(context.WithoutCancel(ctx), c.config.KubeAPIs.ServiceNodePortRange)
	if err != nil {
		return err
	}
	s.registry, s.status, _, err = servicestore.NewREST(c.stores, family, s.ips,
		ports, boundEndpoints{c.core.endpoints, t.spec.Name}, c.core.pods, nil)
	if err != nil {
		return err
	}
	newNetworkAddresses(t, s.informers.Networking().V1()).wrap(s.registry.Store)
	return s.repair(ctx, c, t, record)
}

// newAllocators creates an allocator of ClusterIPs for each IP family, and
// returns the family of single-stack Services.
func (s *services) newAllocators(t *Tenant) (first api.IPFamily, err error) {
	networking := s.informers.Networking().V1()
	s.ips = map[api.IPFamily]ipallocator.Interface{}
	for i, isIPv6 := range t.spec.areIPv6() {
		allocator, err := ipallocator.NewMetaAllocator(
			t.client.NetworkingV1(), clusterRanges{networking.ServiceCIDRs()}, networking.IPAddresses(), isIPv6, nil)
		if err != nil {
			return "", err
		}
		s.ips[allocator.IPFamily()] = allocator
		if i == 0 {
			first = allocator.IPFamily()
		}
	}
	return first, nil
}

// areIPv6 reports which of the ranges of ClusterIPs are of IPv6. Without a range,
// Services are of IPv4.
func (s Spec) areIPv6() []bool {
	if len(s.ServiceCIDRs) == 0 {
		return []bool{false}
	}
	are := make([]bool, len(s.ServiceCIDRs))
	for i := range s.ServiceCIDRs {
		are[i] = netutils.IsIPv6CIDR(&s.ServiceCIDRs[i])
	}
	return are
}

// list starts the informers with their objects: constructors that find caches
// without objects wait for them with pauses.
func (s *services) list() error {
	networking := s.informers.Networking().V1()
	_, ofServices := s.informers.Core().V1().Services().Lister().List(labels.Nothing())
	_, ofRanges := networking.ServiceCIDRs().Lister().List(labels.Nothing())
	_, ofIPs := networking.IPAddresses().Lister().List(labels.Nothing())
	s.informers.Start(s.stop)
	return errors.Join(ofServices, ofRanges, ofIPs)
}

// repair starts the controllers that repair allocations, and waits until they
// have done so once.
func (s *services) repair(ctx context.Context, c *Chain, t *Tenant, record *nodePorts) error {
	networking := s.informers.Networking().V1()
	ofIPs := iprepair.NewRepairIPAddress(repairInterval, t.client,
		s.informers.Core().V1().Services(), networking.ServiceCIDRs(), networking.IPAddresses())
	ofPorts := portrepair.NewRepair(repairInterval, t.client.CoreV1(), t.client.EventsV1(), c.config.KubeAPIs.ServiceNodePortRange, record)
	if err := await(ctx, s.run(ofPorts.RunUntil)); err != nil {
		return err
	}
	repaired := s.run(ofIPs.RunUntil)
	found, err := networking.ServiceCIDRs().Lister().Get(defaultservicecidr.DefaultServiceCIDRName)
	if apierrors.IsNotFound(err) {
		return nil // no ClusterIP can be allocated yet; the controller waits
	}
	if err := await(ctx, repaired); err != nil {
		return err
	}
	if found.DeletionTimestamp != nil || meta.IsStatusConditionFalse(found.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
		return nil // allocates nothing, but Services can be changed and deleted
	}
	return wait.PollUntilContextCancel(ctx, readyInterval, true, s.allocates(found.Spec.CIDRs))
}

// run runs a controller until it is stopped, and returns a channel that receives
// nil after its first success, or an error if it ends without.
func (s *services) run(controller func(onFirstSuccess func(), stop chan struct{})) <-chan error {
	repaired := make(chan error, 2) //nolint:mnd // one after the other
	s.repairs.Go(func() {
		controller(func() { repaired <- nil }, s.stop)
		repaired <- errUnrepaired
	})
	return repaired
}

func await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// allocates returns a condition that reports whether the allocators of ClusterIPs
// know the ranges of the cluster.
func (s *services) allocates(ranges []string) wait.ConditionWithContextFunc {
	return func(context.Context) (bool, error) {
		for _, cidr := range ranges {
			family := api.IPv4Protocol
			if netutils.IsIPv6CIDRString(cidr) {
				family = api.IPv6Protocol
			}
			allocator, served := s.ips[family]
			if !served {
				continue
			}
			if _, err := allocator.DryRun().AllocateNext(); errors.Is(err, ipallocator.ErrNotReady) {
				return false, nil
			}
		}
		return true, nil
	}
}

func (s *services) close() {
	close(s.stop)
	s.repairs.Wait()
	for _, allocator := range s.ips {
		allocator.Destroy()
	}
	s.informers.Close()
}

// boundEndpoints deletes Endpoints of one tenant. Upstream's registry of
// Services deletes those of a deleted Service without the request's context.
type boundEndpoints struct {
	servicestore.EndpointsStorage

	tenant string
}

// Delete implements rest.GracefulDeleter.
func (e boundEndpoints) Delete(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	return e.EndpointsStorage.Delete(keyspace.NewContext(ctx, e.tenant), name, validate, options)
}
