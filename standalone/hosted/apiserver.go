package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
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
)

const (
	// watchDrain bounds how long open watches delay a stop.
	watchDrain = time.Second
	// settleTimeout bounds how long a stop waits for the start to be over. A
	// tenant can have its start hang, and the process has to end all the same.
	settleTimeout = 10 * time.Second
	probeInterval = 25 * time.Millisecond
	// userAgent of the controllers, which names them as managers of fields.
	userAgent = "kube-controller-manager"
)

// apiServer is the running kube-apiserver of one control plane.
type apiServer struct {
	loopback  *rest.Config
	informers informers.SharedInformerFactory
	bootstrap *bootstrap
	client    kubernetes.Interface

	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// startAPIServer builds a kube-apiserver and lets it serve at the inlet.
// Building cannot be interrupted: what it starts ends only with a server that
// has run.
func startAPIServer(ctx context.Context, c *ControlPlane) (*apiServer, error) {
	opts, err := completeOptions(ctx, c)
	if err != nil {
		return nil, err
	}
	config, err := newConfig(opts, c.spec.Network)
	if err != nil {
		return nil, fmt.Errorf("configure the apiserver: %w", err)
	}
	if err := watchNoFrontProxyFiles(config, c.creds); err != nil {
		return nil, err
	}
	resolveServices(config)
	explainStorage(config, c.budget)
	if err := dropContents(config.KubeAPIs.ControlPlane.VersionedInformers); err != nil {
		return nil, fmt.Errorf("drop contents from informers: %w", err)
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
		return nil, fmt.Errorf("make a client of the apiserver: %w", err)
	}
	run, err := buildServer(config)
	if err != nil {
		return nil, err
	}
	s.start(ctx, run)
	return s, nil
}

// buildServer turns a configuration into what runs it.
func buildServer(config *app.Config) (run func(context.Context) error, err error) {
	completed, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("complete the apiserver's configuration: %w", err)
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, fmt.Errorf("build the apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("prepare the apiserver: %w", err)
	}
	return prepared.Run, nil
}

// start runs the server under a context of its own, because it must not be
// told to stop before it has settled.
func (s *apiServer) start(ctx context.Context, run func(context.Context) error) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { // ends with stop
		defer close(s.done)
		s.err = run(ctx)
	}()
	s.bootstrap.start(ctx, s.loopback)
}

// awaitReady waits until the server answers that it is ready and its bootstrap
// objects are there.
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
	for {
		err := s.client.Discovery().RESTClient().Get().AbsPath(path).Timeout(5 * time.Second).Do(ctx).Error()
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			return s.ended()
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), fmt.Errorf("the last answer of %s: %w", path, err))
		case <-time.After(probeInterval):
		}
	}
}

// ended says why the server ended by itself, once done is closed.
func (s *apiServer) ended() error {
	if s.err != nil {
		return fmt.Errorf("the apiserver ended: %w", s.err)
	}
	return errors.New("the apiserver ended by itself")
}

// stop ends the server and its informers. A server that is still starting is
// let through first, for a while: what is cancelled at its start gives up, and
// see [ContainExit].
func (s *apiServer) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = s.awaitHealth(ctx, "/livez") // includes every start-up hook
	select {
	case <-s.bootstrap.done:
	case <-ctx.Done(): // the hooks end within half a minute, since nothing answers them
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
		// There is one apiserver, and it needs no lease in etcd to say so.
		opts.EndpointReconcilerType = string(reconcilers.MasterCountReconcilerType)
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return completed, fmt.Errorf("complete the apiserver's options: %w", err)
	}
	// Not earlier: completing would make a self-signed certificate.
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
		return nil, fmt.Errorf("read the CA in %s: %w", creds.dir, err)
	}
	o.AllowPrivileged = true         // what may run is decided where it runs
	o.EnableAggregatorRouting = true // webhooks and further apiservers are pods, and Service addresses lead nowhere from this process
	o.ServiceClusterIPRanges = spec.ServiceCIDR
	o.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	o.SecureServing.BindPort, o.SecureServing.Required = 0, false // the inlet has a port
	// The kubernetes service leads to no address of this process, unless pods reach one.
	o.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)

	o.Authentication.ClientCert.CAContentProvider = clientCA
	o.Authentication.ServiceAccounts.Issuers = []string{spec.issuer()}
	o.Authentication.ServiceAccounts.KeyFiles = []string{creds.verifyingKeyFile()}
	o.ServiceAccountSigningKeyFile = creds.signingKeyFile()
	o.Authorization.Modes = []string{modes.ModeRBAC}
	if spec.NodeAuthorization {
		o.Authorization.Modes = []string{modes.ModeNode, modes.ModeRBAC}
		o.Admission.GenericAdmission.EnablePlugins = []string{"NodeRestriction"}
	}
	setKubeletOptions(o, spec, creds)
	setFrontProxyOptions(o, creds)
	o.Features.EnableProfiling = spec.Diagnostics
	setEconomyOptions(o)
	o.Etcd.StorageConfig.Prefix = prefixOf(spec.Name)
	o.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
	return o, nil
}

func setKubeletOptions(o *options.ServerRunOptions, spec Spec, creds *credentials) {
	o.KubeletConfig.PreferredAddressTypes = []string{"InternalIP", "ExternalIP", "Hostname"}
	if spec.SeparateKubeletClientCA { // what answers in the kubelets' place is the host name of their nodes
		o.KubeletConfig.PreferredAddressTypes = []string{"Hostname", "InternalIP", "ExternalIP"}
	}
	o.KubeletConfig.TLSClientConfig.CertFile = creds.kubeletClientFile()
	o.KubeletConfig.TLSClientConfig.KeyFile = creds.kubeletClientFile()
	if len(spec.KubeletCA) > 0 {
		o.KubeletConfig.TLSClientConfig.CAFile = creds.kubeletCAFile()
	}
}

// setEconomyOptions leaves out what the host does once for all control planes,
// and what a control plane in good company does not need.
func setEconomyOptions(o *options.ServerRunOptions) {
	o.Etcd.SkipHealthEndpoints = true
	o.Etcd.StorageConfig.CompactionInterval = 0
	o.Etcd.StorageConfig.CountMetricPollPeriod = 0
	o.Etcd.StorageConfig.DBMetricPollInterval = 0
	o.Features.EnablePriorityAndFairness = false
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
