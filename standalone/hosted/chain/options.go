package chain

import (
	"context"
	"fmt"
	"net"
	"sync"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	authentication "k8s.io/kubernetes/pkg/kubeapiserver/authenticator"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// Options configures a Chain.
type Options struct {
	// Store is a client of the tenants' etcd, confined to the tenant of each
	// call.
	Store *kubernetes.Client
	// Feed has the changes in the tenants' etcd.
	Feed *feed.Feed
	// OnFailure is called when objects of a tenant cannot be read or a part of
	// it fails, see [views.Options]; nil for none.
	OnFailure func(tenant string, err error)
	// Decorate wraps the storage of every resource; nil for nothing.
	Decorate Decorator
	// Like is another chain of the process, with the same options but Store. The
	// chain has its documents and its template of a new cluster, which no request
	// changes, and no handler of it. It must not end earlier. Nil for none.
	Like *Chain
}

// placeholder is where upstream requires a value that each tenant has of its
// own.
const placeholder = "https://placeholder.internal"

// newConfig returns upstream's configuration of a kube-apiserver, and that of its
// authentication. They have no credentials, admission and authorization of
// their own.
func newConfig(ctx context.Context) (*app.Config, authentication.Config, error) {
	if err := DisableFeatures(); err != nil {
		return nil, authentication.Config{}, err
	}
	o := options.NewServerRunOptions()
	o.AllowPrivileged = true         // pods are restricted where they run
	o.EnableAggregatorRouting = true // this process does not reach Service addresses
	o.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	o.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)
	o.SecureServing.BindPort, o.SecureServing.Required = 0, false
	o.Authentication.ServiceAccounts.Issuers = []string{placeholder}
	o.Authorization.Modes = []string{modes.ModeAlwaysDeny}
	o.Admission.GenericAdmission.DisablePlugins = o.Admission.GenericAdmission.Plugins.Registered()
	o.Features.EnableProfiling = false
	Economize(o)
	// These limits are of all tenants together. A tenant has limits of its own.
	o.GenericServerRunOptions.MaxRequestsInFlight = 0
	o.GenericServerRunOptions.MaxMutatingRequestsInFlight = 0
	o.Etcd.EnableWatchCache = false
	o.Etcd.StorageConfig.Prefix = "/" // the confined client adds the tenant's
	connectNowhere(&o.Etcd.StorageConfig.Transport)
	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, authentication.Config{}, fmt.Errorf("complete the options of the apiserver: %w", err)
	}
	// Not earlier: completing would create a self-signed certificate.
	completed.SecureServing.Listener = newNoListener()
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, authentication.Config{}, fmt.Errorf("configure the apiserver: %w", err)
	}
	config.KubeAPIs.ControlPlane.Generic.EnableMetrics = false // they are of the process, with all its tenants
	users, err := completed.Authentication.ToAuthenticationConfig()
	if err != nil {
		return nil, users, fmt.Errorf("configure authentication: %w", err)
	}
	return config, users, nil
}

// DisableFeatures turns off, for the whole process, the feature gates of upstream
// by which the apiservers of a cluster find each other. A control plane has one
// apiserver, which would write leases to etcd every 10 seconds, one of them with
// a client of its own, and the other with the host name of this machine. At the
// end of a chain, upstream deletes that one without a tenant.
func DisableFeatures() error {
	gates := map[string]bool{
		string(features.UnknownVersionInteroperabilityProxy): false,
		string(features.APIServerIdentity):                   false,
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("turn off the feature gates by which apiservers find each other: %w", err)
	}
	return nil
}

// Economize disables features of an apiserver that a host provides once for all
// control planes.
func Economize(o *options.ServerRunOptions) {
	o.Etcd.SkipHealthEndpoints = true
	o.Etcd.StorageConfig.CountMetricPollPeriod = 0
	o.Etcd.StorageConfig.DBMetricPollInterval = 0
	o.Features.EnablePriorityAndFairness = false
}

// noListener is the listener of an apiserver that does not listen. Upstream's
// server requires one, and ends when it is closed.
type noListener struct {
	closed chan struct{}
	close  func()
}

func newNoListener() noListener {
	closed := make(chan struct{})
	return noListener{closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// Accept implements net.Listener.
func (l noListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l noListener) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener. Upstream requires an address.
func (noListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
