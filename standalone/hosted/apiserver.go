package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/discovered"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const (
	// watchDrain limits how long open watches delay a stop.
	watchDrain = time.Second
	// settleTimeout limits how long a stop waits for a start in progress. A
	// tenant can make its start hang, which must not keep the process from
	// exiting.
	settleTimeout = 10 * time.Second
	probeInterval = 25 * time.Millisecond
	// userAgent is the user agent of the controllers, and thereby their name as
	// field managers.
	userAgent = "kube-controller-manager"
)

// apiServer is the running apiserver of one control plane.
type apiServer struct {
	loopback  *rest.Config
	informers informers.SharedInformerFactory
	// views are those of a tenant of a handler chain; nil for upstream's
	// kube-apiserver.
	views     *views.Views
	apis      *discovered.Shared // of the chain
	bootstrap *bootstrap
	client    kubernetes.Interface
	// handler serves requests of all clients.
	handler http.Handler

	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// startAPIServer builds upstream's kube-apiserver and serves it at the inlet. Building
// cannot be interrupted: its goroutines stop only with a server that has run.
func startAPIServer(ctx context.Context, c *ControlPlane) (*apiServer, error) {
	opts, err := completeOptions(ctx, c)
	if err != nil {
		return nil, err
	}
	config, err := newConfig(opts, c.spec.Network)
	c.chains.super.reportSize()
	if err != nil {
		return nil, fmt.Errorf("configure the apiserver: %w", err)
	}
	if err := watchNoFrontProxyFiles(config, c.creds); err != nil {
		return nil, err
	}
	resolveServices(config)
	explainStorage(config)
	limitRequests(config, c)
	wrapAPIs(config, c.wrapAPIs)
	if err := dropContents(config.KubeAPIs.ControlPlane.VersionedInformers); err != nil {
		return nil, fmt.Errorf("strip objects in informers: %w", err)
	}
	if !c.spec.Diagnostics {
		hideProcess(config)
	}
	generic := config.KubeAPIs.ControlPlane.Generic
	s := &apiServer{done: make(chan struct{}), informers: config.KubeAPIs.ControlPlane.VersionedInformers}
	s.loopback = unlimited(generic.LoopbackClientConfig)
	if s.bootstrap, err = takeOverHooks(generic); err != nil {
		return nil, err
	}
	if s.client, err = kubernetes.NewForConfig(s.loopback); err != nil {
		return nil, fmt.Errorf("create a client of the apiserver: %w", err)
	}
	var run func(context.Context) error
	if s.handler, run, err = buildServer(config); err != nil {
		return nil, err
	}
	s.start(ctx, run)
	return s, nil
}

// buildServer builds the server of a configuration and returns its handler and
// its run function.
func buildServer(config *app.Config) (http.Handler, func(context.Context) error, error) {
	completed, err := config.Complete()
	if err != nil {
		return nil, nil, fmt.Errorf("complete the apiserver's configuration: %w", err)
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, nil, fmt.Errorf("build the apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the apiserver: %w", err)
	}
	return chain.GenericAPIServer.Handler, prepared.Run, nil
}

// start runs the server under a context of its own, because it must not be
// stopped before it has settled.
func (s *apiServer) start(ctx context.Context, run func(context.Context) error) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { // until stop
		defer close(s.done)
		s.err = run(ctx)
	}()
	s.bootstrap.start(ctx, s.loopback)
}

// awaitReady waits until the server reports that it is ready and its bootstrap
// objects exist.
func (s *apiServer) awaitReady(ctx context.Context) error {
	if err := s.awaitHealth(ctx, "/readyz"); err != nil {
		return err
	}
	select {
	case <-s.bootstrap.done:
		return s.bootstrap.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *apiServer) awaitHealth(ctx context.Context, path string) error {
	var last error
	for {
		err := s.client.Discovery().RESTClient().Get().AbsPath(path).Timeout(5 * time.Second).Do(ctx).Error()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // a request that ctx interrupts has no response
			last = err
		}
		select {
		case <-s.done:
			return s.ended()
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), fmt.Errorf("last response of %s: %w", path, last))
		case <-time.After(probeInterval):
		}
	}
}

// ended returns the reason why the server exited by itself, once done is
// closed.
func (s *apiServer) ended() error {
	if s.err != nil {
		return fmt.Errorf("the apiserver exited: %w", s.err)
	}
	return errors.New("the apiserver exited by itself")
}

// stop stops the server and its informers. It lets a start in progress finish
// first, for a while: hooks that are cancelled give up, see [ContainExit].
func (s *apiServer) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = s.awaitHealth(ctx, "/livez") // includes every start hook
	select {
	case <-s.bootstrap.done:
	case <-ctx.Done(): // the hooks give up within half a minute without a server
	}
	s.cancel()
	<-s.done
	s.informers.Shutdown()
}

func completeOptions(ctx context.Context, c *ControlPlane) (options.CompletedOptions, error) {
	opts, err := serverOptions(c.spec, c.creds, c.etcd)
	if err != nil {
		return options.CompletedOptions{}, err
	}
	if c.podAddress != nil {
		opts.GenericServerRunOptions.AdvertiseAddress = c.podAddress
		// The only apiserver needs no lease in etcd.
		opts.EndpointReconcilerType = string(reconcilers.MasterCountReconcilerType)
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return completed, fmt.Errorf("complete the apiserver's options: %w", err)
	}
	// Not earlier: completing would create a self-signed certificate.
	completed.SecureServing.Listener = c.inlet
	completed.SecureServing.ServerCert.GeneratedCert = c.creds
	if errs := completed.Validate(); len(errs) > 0 {
		return completed, fmt.Errorf("the apiserver's options: %w", utilerrors.NewAggregate(errs))
	}
	return completed, nil
}

func serverOptions(spec Spec, creds *credentials, etcd string) (*options.ServerRunOptions, error) {
	o := options.NewServerRunOptions()
	clientCA, err := dynamiccertificates.NewStaticCAContent("client CA", creds.authority.CertPEM)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", creds.path(authorityFile), err)
	}
	o.AllowPrivileged = true         // pods are restricted where they run
	o.EnableAggregatorRouting = true // webhooks and aggregated APIs are pods, and this process does not reach Service addresses
	o.ServiceClusterIPRanges = spec.ServiceCIDR
	if spec.SecondaryServiceCIDR != "" {
		o.ServiceClusterIPRanges += "," + spec.SecondaryServiceCIDR
	}
	o.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	o.SecureServing.BindPort, o.SecureServing.Required = 0, false // the inlet has a port
	// This process is not reachable at an address of the kubernetes Service,
	// unless pods reach one.
	o.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)

	o.Authentication.ClientCert.CAContentProvider = clientCA
	o.Authentication.ServiceAccounts.Issuers = []string{spec.issuer()}
	o.Authentication.ServiceAccounts.KeyFiles = []string{creds.path(verifyingKeyFile)}
	o.ServiceAccountSigningKeyFile = creds.path(signingKeyFile)
	o.Authorization.Modes = []string{modes.ModeRBAC}
	if spec.NodeAuthorization {
		o.Authorization.Modes = []string{modes.ModeNode, modes.ModeRBAC}
		o.Admission.GenericAdmission.EnablePlugins = []string{"NodeRestriction"}
	}
	setKubeletOptions(o, spec, creds)
	setFrontProxyOptions(o, creds)
	o.Features.EnableProfiling = spec.Diagnostics
	setEconomyOptions(o)
	o.Etcd.StorageConfig.Prefix = keyspace.Prefix(spec.Name)
	o.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
	return o, nil
}

func setKubeletOptions(o *options.ServerRunOptions, spec Spec, creds *credentials) {
	o.KubeletConfig.PreferredAddressTypes = []string{"InternalIP", "ExternalIP", "Hostname"}
	if spec.SeparateKubeletClientCA { // a proxy for kubelets uses the host names of their nodes
		o.KubeletConfig.PreferredAddressTypes = []string{"Hostname", "InternalIP", "ExternalIP"}
	}
	o.KubeletConfig.TLSClientConfig.CertFile = creds.path(kubeletClientFile)
	o.KubeletConfig.TLSClientConfig.KeyFile = creds.path(kubeletClientFile)
	if len(spec.KubeletCA) > 0 || spec.NodeAuthorization {
		o.KubeletConfig.TLSClientConfig.CAFile = creds.path(kubeletCAFile)
	}
}

// setEconomyOptions disables features that the host provides once for all
// control planes, or that a control plane next to many others does not need.
func setEconomyOptions(o *options.ServerRunOptions) {
	chain.Economize(o)
	o.GenericServerRunOptions.ShutdownSendRetryAfter = true
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchDrain
}

// unlimited copies a client configuration without its rate limit.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = userAgent
	return config
}
