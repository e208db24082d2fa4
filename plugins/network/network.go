// Package network is the contract between the syncer and the providers of
// tenants' networks.
//
// A provider is a [Registration]: a type, by which Networks of tenants ask for
// it in spec.type, and a function that creates a [Provider] when a syncer starts.
// A platform's own program is the syncer's command with the registrations of the
// providers that it offers beside flat:
//
//	app.NewExtendedCommand(app.Extensions{NetworkProviders: []network.Registration{mine.Registration()}})
//
// The syncer calls Ensure when a Network changes, and again at intervals, until
// the Network is deleted and its pods have ended. Then it calls Delete until
// nothing is left. It writes the status and the finalizer of the Network; a
// provider returns what they say. PreparePod and ReleasePod are called for each
// pod on the network.
//
// Networks are written by tenants, and every tenant can write what another one
// has written: a provider identifies a network by the tenant and the name, and
// verifies that the tenant may use what the spec and a pod's NIC name.
//
// Calls are limited to 10 seconds. A provider that panics, hangs or returns
// errors affects only the network or pod that it was called for.
package network

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// Network is a network of a tenant.
type Network struct {
	// Tenant owns the network. Its key together with the name identifies the
	// network among those of all tenants.
	Tenant plugins.Tenant
	// Name is the name of the Network.
	Name string
	// UID is that of the Network. A network is created with the name and another
	// UID only after the deletion of the one before is complete.
	UID types.UID
	// Spec is what the tenant wants. When the network is deleted, it has only what
	// is immutable: the type and vpcID.
	Spec networkv1.NetworkSpec
}

// Provider makes the networks of one type. Its methods are called for several
// networks and pods at a time, and for each one at a time. They are level
// triggered, safe to repeat, also after a restart of the syncer, and never wait
// for what takes long. They return when ctx is done.
type Provider interface {
	// Ensure brings the network to what its spec says and returns its state.
	//
	// A [plugins.RejectionError] says what the tenant has to change: the phase of
	// the Network is Failed, with its reason and message. Any other error is for
	// the log of the syncer: the phase is Unknown. All are retried with backoff,
	// and so is a network that is not ready.
	Ensure(ctx context.Context, n Network) (State, error)

	// Delete deletes what Ensure has made, and reports whether nothing is left. It
	// is called when no pod uses the network, again until it reports true, and
	// also for a network that was never made. Its tenant may be gone.
	Delete(ctx context.Context, n Network) (gone bool, err error)

	// PreparePod prepares the network for a pod, and returns what its CNI plugin
	// needs. The pod is not scheduled before it is ready. A
	// [plugins.RejectionError] says what the tenant has to change; the pod waits
	// with its message. All answers that are not ready are retried with backoff.
	PreparePod(ctx context.Context, pod Pod) (Attachment, error)

	// ReleasePod releases what PreparePod has allotted to a pod, and reports
	// whether nothing is left. It is called when the containers of the pod have
	// ended or the pod was deleted by force, again until it reports true, and also
	// for a pod that was never prepared. Its copy does not vanish before.
	ReleasePod(ctx context.Context, pod Pod) (gone bool, err error)
}

// State is where a network stands.
type State struct {
	// Ready reports whether pods can use the network.
	Ready bool
	// Message tells the tenant what is being waited for while Ready is false.
	Message string
	// DNSServiceIP is the address of the DNS service of a network whose
	// spec.service.ipam is External, which is not ready before it has one.
	DNSServiceIP string
}
