// Package provisioner runs the control planes of VirtualClusters inside this
// process: the way of provisioning that is called Hosted.
package provisioner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/version"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const (
	// deletePatience is how long a worker waits for a deletion, most of which
	// take less.
	deletePatience = time.Second
	// firstBackoff and lastBackoff bound the time before a control plane that
	// ended by itself is started again.
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
	// recheck is the interval of checking a running control plane.
	recheck = time.Hour
	// portRetry is when to start a control plane again for which no port was free.
	portRetry = 15 * time.Second

	day = 24 * time.Hour
	// defaultPKIDays is the default of spec.pkiExpireDays.
	defaultPKIDays = 365
)

// Options are what all control planes of a host have, or have unless their
// VirtualClusters say otherwise.
type Options struct {
	// KubeletCA is the authority, in PEM, by which apiservers verify what
	// answers in the kubelets' place.
	KubeletCA []byte
	// Network returns where the apiserver of a tenant connects, by its cluster
	// key.
	Network func(key string) egress.Network
	// Limits and Isolation are those of tenants that have no others.
	Limits    hosted.Limits
	Isolation tenancyv1alpha1.Isolation
	// Sleep is when control planes sleep that have no other times.
	Sleep SleepOptions
	// ExtraSANs: control planes have the extra names in the spec, which were checked.
	ExtraSANs bool
}

// Hosted runs control planes on a Host. Each is known by the name of its
// tenant's root namespace.
type Hosted struct {
	host    *hosted.Host
	options Options
	events  chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]

	ctx  context.Context // of all goroutines
	work sync.WaitGroup

	mu        sync.Mutex
	planes    map[string]*plane    // by cluster key
	deletions map[string]*deletion // by cluster key
	wakes     map[string]wake      // by cluster key
	backoff   *flowcontrol.Backoff
}

// plane is a control plane that was started.
type plane struct {
	*hosted.ControlPlane
	// fixed are those with which it was started.
	fixed fixedSettings
	// limits and extraSANs are those that it has now.
	limits    hosted.Limits
	extraSANs []string
	// of leads to its VirtualCluster, and reached tells which limits it has
	// reached.
	of      *tenancyv1alpha1.VirtualCluster
	reached *reachedLimits
	failing failingControllers
	// stopping: it is being put to sleep, or is retired.
	stopping bool
	// handedOver: another process may run it.
	handedOver bool
	// work is what its controllers had to do when that was last looked up.
	work lookup
	// scaling is the state of its workloads.
	scaling scaling
}

// fixedSettings are what a control plane has from its start on: a change restarts it.
type fixedSettings struct {
	restartedAt string // the annotation's value
	isolation   tenancyv1alpha1.Isolation
	daemonSets  bool
	issuer      string
	// second is the range of Service addresses of the second IP family.
	second string
}

var (
	_ provisioner.Provisioner = (*Hosted)(nil)
	_ provisioner.Notifier    = (*Hosted)(nil)
)

// New makes a provisioner on the host. Its goroutines end with ctx; Wait waits
// for them.
func New(ctx context.Context, host *hosted.Host, options Options) *Hosted {
	h := &Hosted{
		host:      host,
		options:   options,
		events:    make(chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]),
		ctx:       ctx,
		planes:    map[string]*plane{},
		deletions: map[string]*deletion{},
		wakes:     map[string]wake{},
		backoff:   flowcontrol.NewBackOff(firstBackoff, lastBackoff),
	}
	h.work.Go(h.watchLimits)
	return h
}

// Wait waits for the work in the background. The host stops the control planes.
func (h *Hosted) Wait() { h.work.Wait() }

// Events tells of control planes that became ready, ended, or are deleted.
func (h *Hosted) Events() <-chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster] {
	return h.events
}

// Capabilities returns that a control plane uses the Service addresses that it
// is allotted, and reaches pods and vn-agent.
func (*Hosted) Capabilities() provisioner.Capabilities {
	return provisioner.Capabilities{ServiceCIDR: true, SecondServiceCIDR: true, Network: true}
}

// Ensure starts the control plane if it does not run, and says where it stands.
func (h *Hosted) Ensure(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	if err := checkSpec(vc.Spec, hostedVersion()); err != nil {
		return provisioner.ControlPlane{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := vc.Status.ClusterNamespace
	if h.deletions[key] != nil {
		return waiting("The control plane is being deleted"), nil
	}
	found := h.planes[key]
	if found != nil {
		found.apply(limitsOf(vc.Spec.ControlPlane, h.options.Limits))
		if err := found.rename(h.extraSANsOf(vc)); err != nil {
			return provisioner.ControlPlane{}, err
		}
	}
	decision := h.decide(vc, found)
	if decision.Asleep {
		return h.ensureAsleep(vc, found, decision), nil
	}
	state, err := h.ensureAwake(vc, found)
	state.ExtraSANs = h.unsupportedSANs(vc)
	return h.wakeUp(vc, state, decision), err
}

// ensureAwake starts the control plane if it does not run. The caller holds the
// lock.
func (h *Hosted) ensureAwake(vc *tenancyv1alpha1.VirtualCluster, found *plane) (provisioner.ControlPlane, error) {
	switch {
	case found == nil:
		return h.start(vc)
	case isClosed(found.Done()):
		return h.startAgain(vc, found)
	case found.fixed != h.fixedOf(vc), found.stopping:
		initiateStop(found.ControlPlane)
		return waiting("The control plane is stopping, to be started again"), nil
	case !isClosed(found.Ready()):
		return waiting("The control plane is starting"), nil
	}
	if found.handedOver {
		takeBack(found)
	}
	gateway, err := found.GatewayAccess()
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	return provisioner.ControlPlane{
		Ready:       true,
		Endpoint:    found.Endpoint(),
		PodEndpoint: found.PodEndpoint(),
		Version:     found.Version().GitVersion,
		Kubeconfig:  found.AdminKubeconfig(),

		InternalKubeconfig: found.InternalKubeconfig(),
		// The platform's own requests are not use.
		PlatformKubeconfig: found.PlatformKubeconfig(),
		// The kubeconfig's certificate is renewed without an event.
		RecheckAfter:    recheck,
		KubeletClientCA: found.ClientCAs(),
		Gateway:         gateway,
		Limits:          found.reached.report(),
		Controllers:     found.failing.report(),
	}, nil
}

// fixedOf returns what the control plane of a VirtualCluster should have from its
// start on.
func (h *Hosted) fixedOf(vc *tenancyv1alpha1.VirtualCluster) fixedSettings {
	fixed := fixedSettings{
		restartedAt: vc.Annotations[names.RestartedAt], isolation: h.isolationOf(vc),
		daemonSets: vc.Spec.Policy != nil && vc.Spec.Policy.DaemonSets == tenancyv1alpha1.DaemonSetsRun,
	}
	_, fixed.second = serviceCIDRs(vc)
	if vc.Spec.ControlPlane != nil {
		fixed.issuer = vc.Spec.ControlPlane.ServiceAccountIssuer
	}
	return fixed
}

// isolationOf returns what the control plane of a VirtualCluster shares.
func (h *Hosted) isolationOf(vc *tenancyv1alpha1.VirtualCluster) tenancyv1alpha1.Isolation {
	if vc.Spec.ControlPlane != nil && vc.Spec.ControlPlane.Isolation != "" {
		return vc.Spec.ControlPlane.Isolation
	}
	return h.options.Isolation
}

func waiting(message string) provisioner.ControlPlane {
	return provisioner.ControlPlane{Message: message}
}

// serviceCIDRs returns the ranges of Service addresses of a tenant: those that it
// was allotted, or those that it names.
func serviceCIDRs(vc *tenancyv1alpha1.VirtualCluster) (first, second string) {
	if vc.Status.ServiceCIDR != "" {
		return vc.Status.ServiceCIDR, vc.Status.SecondaryServiceCIDR
	}
	return vc.Spec.ServiceCIDR, vc.Spec.SecondaryServiceCIDR
}

// start starts the control plane. The caller holds the lock.
func (h *Hosted) start(vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	first, second := serviceCIDRs(vc)
	key, limits, fixed := vc.Status.ClusterNamespace, limitsOf(vc.Spec.ControlPlane, h.options.Limits), h.fixedOf(vc)
	started, err := h.host.Run(hosted.Spec{
		Name:          key,
		ServiceCIDR:   first,
		ClusterDomain: vc.Spec.ClusterDomain,
		Shared:        fixed.isolation == tenancyv1alpha1.IsolationShared,
		DaemonSets:    fixed.daemonSets,

		SecondaryServiceCIDR: second,
		ServiceAccountIssuer: fixed.issuer,

		CertificateValidity: time.Duration(vc.Spec.PKIExpireDays) * day,
		// vn-agent serves many tenants, and each tenant's own authority signs
		// for the tenant's users.
		SeparateKubeletClientCA: true,
		Limits:                  limits.Stored,
		Requests:                limits.Requests,
		Expressions:             limits.Expressions,
		KubeletCA:               h.options.KubeletCA,
		Network:                 h.options.Network(key),
		ExtraSANs:               h.extraSANsOf(vc),
	})
	switch {
	case errors.Is(err, hosted.ErrNoPodPort):
		return provisioner.ControlPlane{RecheckAfter: portRetry}, provisioner.Failf(tenancyv1alpha1.ReasonNoPodPort,
			"%s: run more replicas of vc-host, or give it a larger range with --pod-ports", err)
	case errors.Is(err, hosted.ErrFamily):
		return provisioner.ControlPlane{}, provisioner.Failf(tenancyv1alpha1.ReasonInvalidSpec,
			"%s: create the VirtualCluster again with a service CIDR of the other family first", err)
	case err != nil:
		return provisioner.ControlPlane{}, fmt.Errorf("start: %w", err)
	}
	h.planes[key] = &plane{
		ControlPlane: started, fixed: fixed,
		limits: limits, extraSANs: h.extraSANsOf(vc), of: reference(vc), reached: &reachedLimits{last: started.Consumption()},
	}
	h.work.Go(func() { h.follow(started, reference(vc)) })
	return waiting("The control plane is starting"), nil
}

// startAgain restarts a control plane that has stopped: at once after a
// requested stop, otherwise with backoff and an error. The caller holds the
// lock.
func (h *Hosted) startAgain(vc *tenancyv1alpha1.VirtualCluster, ended *plane) (provisioner.ControlPlane, error) {
	key := vc.Status.ClusterNamespace
	if err := ended.Err(); err != nil {
		now := h.backoff.Clock.Now()
		if h.backoff.Get(key) == 0 {
			h.backoff.Next(key, now)
		}
		if h.backoff.IsInBackOffSinceUpdate(key, now) {
			return provisioner.ControlPlane{}, err
		}
		h.backoff.Next(key, now)
	}
	delete(h.planes, key)
	return h.start(vc)
}

// initiateStop has a control plane stop and does not wait for it.
func initiateStop(running *hosted.ControlPlane) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = running.Stop(ctx) // it says that the control plane still runs; Done tells when it no longer does
}

// hostedVersion is the version of Kubernetes in this process, such as v1.36.3.
// A build without stamps knows less of it.
func hostedVersion() string {
	return version.Get().GitVersion
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
