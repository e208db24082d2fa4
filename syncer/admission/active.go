package admission

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	discoveryac "k8s.io/client-go/applyconfigurations/discovery/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// handover is how long a replica waits that begins to answer: what its
	// predecessor has allowed is written by then, and in the cache.
	handover = 2 * time.Second
)

const fieldOwner = client.FieldOwner("vc-syncer")

// Active lets one replica at a time answer, whether the replicas elect a leader
// or share the tenants.
type Active struct {
	service types.NamespacedName
	address netip.AddrPort
	client  client.Client
	elector *leaderelection.LeaderElector
	ready   atomic.Bool
}

// NewActive returns the election among the replicas behind a Service, by a Lease
// of its name. The one that answers makes its address the only one of the Service;
// if the address is not valid, the Service leads there otherwise.
func NewActive(config *rest.Config, c client.Client, service types.NamespacedName, address netip.AddrPort) (*Active, error) {
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Lease %s: %w", service, err)
	}
	a := &Active{service: service, address: address, client: c}
	a.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: service.Name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: string(uuid.NewUUID())},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: a.begin, OnStoppedLeading: func() { a.ready.Store(false) }},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the election of the Lease %s: %w", service, err)
	}
	return a, nil
}

// Now reports whether this replica answers.
func (a *Active) Now() bool {
	return a.ready.Load() && a.elector.IsLeader() && a.elector.Check(0) == nil
}

// Start takes part in the election until ctx is done.
func (a *Active) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		a.elector.Run(ctx)
	}
	return nil
}

// begin answers from now on, until ctx is done.
func (a *Active) begin(ctx context.Context) {
	a.ready.Store(false)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(handover):
		}
		err := a.publish(ctx)
		if err == nil {
			break
		}
		log.FromContext(ctx).Error(err, "Cannot lead the Service to this replica; retrying")
	}
	a.ready.Store(true)
}

// publish makes the address of this replica the only one of the Service.
func (a *Active) publish(ctx context.Context) error {
	if !a.address.IsValid() {
		return nil
	}
	slice := discoveryac.EndpointSlice(a.service.Name, a.service.Namespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: a.service.Name, discoveryv1.LabelManagedBy: string(fieldOwner)}).
		WithAddressType(addresses.SliceType(a.address.Addr())).
		WithEndpoints(discoveryac.Endpoint().WithAddresses(a.address.Addr().String())).
		WithPorts(discoveryac.EndpointPort().WithName("webhook").WithPort(int32(a.address.Port())))
	if err := a.client.Apply(ctx, slice, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply EndpointSlice %s: %w", a.service, err)
	}
	return nil
}
