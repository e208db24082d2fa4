// Package provisioner is the contract between vc-manager and the ways to run a
// tenant's control plane.
//
// A provisioner is a [Registration]: a name, by which VirtualClusters ask for
// it, and a function that creates a [Provisioner] when a manager starts. A
// platform's own program is the manager's command with the registrations of the
// provisioners that it offers:
//
//	app.NewCommand(external.Registration(), mine.Registration()).ExecuteContext(ctx)
//
// The manager calls Ensure whenever a VirtualCluster or what it watches for it
// changes, and again at intervals, until the VirtualCluster is deleted. Then it
// calls Delete until nothing is left. It writes the status, the Secret with the
// kubeconfig, events and conditions; a provisioner returns what they say.
package provisioner

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// Provisioner runs the control planes of VirtualClusters in one way. Its
// methods are called from reconciles, of several VirtualClusters at a time and
// of each one at a time: they are level triggered, safe to repeat, and never
// wait for a control plane. They do not change the VirtualCluster.
//
// A provisioner that connects to control planes or reads what tenants write does
// so within limits of size and time: an apiserver may answer anything, or never.
type Provisioner interface {
	// Ensure brings the control plane to what the spec says and returns its
	// state. The root namespace named by status.clusterNamespace exists. An
	// error is retried with backoff; a [Failure] says that an admin has to
	// change something.
	Ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (ControlPlane, error)

	// Delete deletes the control plane and its data, and reports whether
	// nothing is left. It is called again until it does, and also for a control
	// plane that was never made. The root namespace may be gone.
	Delete(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error)

	// Capabilities returns what the manager can configure of these control
	// planes and around them. It is the same at every call.
	Capabilities() Capabilities
}

// Capabilities are what a provisioner needs of a manager, and what its control
// planes can do. The zero value is that of control planes that are configured
// elsewhere and reach nothing of the super cluster.
type Capabilities struct {
	// ServiceCIDR: a control plane allocates Service addresses from
	// status.serviceCidr, so the manager allots it a part of its pool.
	ServiceCIDR bool
	// SecondServiceCIDR: a control plane with status.serviceCidr that exists already
	// takes status.secondaryServiceCidr, too. It may restart for that.
	SecondServiceCIDR bool
	// Network: the apiservers connect to the network of the super cluster: to
	// pods, such as webhooks and aggregated APIs of the tenant, and to vn-agent.
	// Without it, tenants get no API that vn-agent serves: one that does not
	// answer keeps namespaces from being deleted.
	Network bool
	// Converted: there are no control planes. Endpoint and Kubeconfig lead to the
	// gateway, which converts the requests of the tenants to requests of the super
	// cluster. Nothing is synced for them, and they are ready without the syncer.
	Converted bool
}

// Notifier is implemented by provisioners that know when a control plane's
// state changes; the VirtualCluster of each event is reconciled again.
type Notifier interface {
	// Events is the same channel at every call. Its reader is the manager, once
	// it leads; a sender must be able to wait.
	Events() <-chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]
}

// Watcher is implemented by provisioners whose control planes are objects of the
// super cluster.
type Watcher interface {
	// Sources request reconciles of VirtualClusters whose objects change. It is
	// called once, before the manager starts.
	Sources() []source.Source
}

// ControlPlane is where a control plane stands.
type ControlPlane struct {
	// Ready says that the apiserver serves; the other fields except Message are
	// set when it is true.
	Ready bool
	// Endpoint is the URL of the apiserver.
	Endpoint string
	// PodEndpoint is the URL at which pods reach the apiserver; empty if that
	// is the same or is not known.
	PodEndpoint string
	// Version is the Kubernetes version that runs, such as v1.36.3.
	Version string
	// Kubeconfig is an admin's kubeconfig with all credentials embedded.
	Kubeconfig []byte
	// InternalKubeconfig is the same for clients inside the super cluster; empty
	// if these have no address of their own.
	InternalKubeconfig []byte
	// PlatformKubeconfig is the same for the platform's own clients, whose
	// requests are not use; empty if they use Kubeconfig.
	PlatformKubeconfig []byte
	// KubeletClientCA is the authority of the certificate by which the
	// apiserver shows kubelets who it is, in PEM: one that signs nothing else;
	// beside it, that of the certificate for aggregated APIs. It may be empty;
	// nothing answers in the kubelets' place then.
	KubeletClientCA []byte
	// Gateway is what the gateway needs of the control plane. If its Server is
	// empty, that is Endpoint. Without a Certificate, the control plane is external:
	// the gateway passes no connections on to it, and connects to it only at public
	// addresses and those in its --external-cidr.
	Gateway gatewayaccess.Access
	// Limits reports whether the control plane is within the limits that its
	// provisioner enforces; nil if it enforces none.
	Limits *Limits
	// Controllers reports whether the controllers of the control plane work; nil
	// if its provisioner does not know.
	Controllers *Controllers
	// ExtraSANs reports whether the control plane has all of
	// spec.controlPlane.extraSANs; nil if there are none.
	ExtraSANs *ExtraSANs
	// Message says what is being waited for while Ready is false.
	Message string
	// RecheckAfter is when to reconcile again without an event; zero leaves
	// that to the manager. It is for provisioners that cannot report every
	// change by Events.
	RecheckAfter time.Duration
	// Sleep reports whether the control plane sleeps; nil for a provisioner whose
	// control planes never do. One that sleeps is not Ready, and that is no
	// failure.
	Sleep *Sleep
	// Move reports whether the data of the control plane is in the store of its
	// spec; nil if it has never been moved.
	Move *Move
}

// Move is whether the data of a control plane is in the store of its spec.
type Move struct {
	Done bool
	// Reason and Message are those of the condition Moved.
	Reason, Message string
}

// Limits reports whether a control plane is within its limits.
type Limits struct {
	// Reached is the reason of the condition WithinLimits while a limit is
	// reached, and empty otherwise.
	Reached string
	// Message describes the limits that are reached.
	Message string
}

// Controllers reports whether the controllers of a control plane work.
type Controllers struct {
	// Failing describes those that do not; empty for none.
	Failing string
}

// ExtraSANs reports whether a control plane has all extra names.
type ExtraSANs struct {
	// Rejected is the reason of the condition ExtraSANsValid if it does not have
	// all, and empty otherwise.
	Rejected string
	// Message describes those that are rejected.
	Message string
}

// Sleep is whether a control plane sleeps.
type Sleep struct {
	Asleep bool
	// Paused: the control plane does not wake by itself.
	Paused bool
	// Reason and Message are those of the condition Awake.
	Reason, Message string
	// WakeTime is when it wakes by itself; zero for never.
	WakeTime time.Time
}

// IsAsleep reports whether the control plane sleeps.
func (c ControlPlane) IsAsleep() bool { return c.Sleep != nil && c.Sleep.Asleep }
