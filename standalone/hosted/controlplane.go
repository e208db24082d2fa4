package hosted

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	componentversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/stream"
)

const (
	startTimeout = 2 * time.Minute
	renewTimeout = 10 * time.Second
)

// ControlPlane is a running control plane of a Host.
type ControlPlane struct {
	spec            Spec
	outside, inside endpoint
	etcd            string
	// creds are loaded from the keyring before the control plane serves.
	creds   *credentials
	keyring Keyring
	// hosts are those in the URLs of clients.
	hosts []string
	// serving has the names of the serving certificate. A change of them is
	// reported by renamed.
	serving atomic.Pointer[servingNames]
	renamed chan struct{}
	inlet   *inlet
	// podAddress is the address of the inlet for pods; nil if they cannot reach
	// it.
	podAddress net.IP
	// turns limits how many control planes of the host start at a time.
	turns *turns
	// chains starts the handler chain.
	chains *chains
	// discovery is the interval at which controllers discover new resources; zero
	// for the default.
	discovery time.Duration
	// attempts counts the starts that have failed.
	attempts attempts
	// requests has the requests in flight.
	requests *inflight.Tenant
	ledger   *quota.Ledger
	// expressions has those that are stored.
	expressions *expressions.Account
	activity    *activity
	// changes serves the changes of all objects to the platform.
	changes stream.Endpoint
	// awake is called before the control plane becomes ready: requests that
	// waited for it continue.
	awake func()
	// closeRoute has new connections no longer passed to the inlet.
	closeRoute func()
	// retired says that another host has taken over.
	retired atomic.Bool

	// byNeed runs the controllers; nil if they run all at once.
	byNeed atomic.Pointer[controllers.ByNeed]

	// loopback is the client of the control plane's own controllers; set before
	// ready is closed.
	loopback kubernetes.Interface

	cancel context.CancelFunc
	ready  chan struct{}
	done   chan struct{}
	err    error // set before done is closed

	// duty is whether the controllers run.
	duty *duty
	// guard rejects writes of the controllers while another host may run them; nil
	// if there is none.
	guard func(*rest.Config)
}

// Name returns the name of the control plane's Spec.
func (c *ControlPlane) Name() string { return c.spec.Name }

// Ready returns a channel that is closed once the control plane can be used:
// the apiserver is ready, RBAC has its roles, the default namespace has its
// service account and CA bundle, and the controllers run.
func (c *ControlPlane) Ready() <-chan struct{} { return c.ready }

// Done returns a channel that is closed once all of the control plane has
// stopped.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// Err returns the reason why the control plane exited by itself; nil while it
// runs and after Stop.
func (c *ControlPlane) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Endpoint returns the URL for clients. It is the same for all control planes of
// the host, unless the host has a domain.
func (c *ControlPlane) Endpoint() string { return c.outside.url() }

// ServerName returns the TLS server name of this control plane.
func (c *ControlPlane) ServerName() string { return serverName(c.spec.Name) }

// isPlatform reports whether a connection is the platform's.
func (c *ControlPlane) isPlatform(connection *tls.ConnectionState) bool {
	return c.creds.isPlatform(connection)
}

// CA returns the certificate authority of a control plane that is ready, in PEM.
func (c *ControlPlane) CA() []byte { return c.creds.authority.CertPEM }

// PodEndpoint returns the URL of the control plane for pods and nodes, which
// requires no server name.
func (c *ControlPlane) PodEndpoint() string { return "https://" + c.inlet.Addr().String() }

// DNSAddress returns the conventional ClusterIP of the cluster's DNS; nil if
// the range is too small.
func (c *ControlPlane) DNSAddress() net.IP {
	ip, _ := c.spec.serviceIP(addresses.DNS) // Validate has checked the range
	return ip
}

// ClusterDomain returns the DNS domain of the cluster.
func (c *ControlPlane) ClusterDomain() string { return c.spec.ClusterDomain }

// NewClientCertificate issues a certificate of a control plane that is ready, for
// a user with a name and groups.
// It is not renewed.
func (c *ControlPlane) NewClientCertificate(name string, groups []string) (pki.KeyPair, error) {
	return c.creds.authority.Client(name, groups, c.spec.CertificateValidity, time.Now())
}

// NewServingCertificate issues a certificate for a server that the control
// plane's clients trust, such as a kubelet. It is not renewed.
func (c *ControlPlane) NewServingCertificate(name string, ips []net.IP) (pki.KeyPair, error) {
	return c.creds.authority.Server(name, []string{name}, ips, c.spec.CertificateValidity, time.Now())
}

// ClientCAs returns the authorities, in PEM, of the client certificates with
// which the apiserver connects to kubelets and aggregated APIs.
func (c *ControlPlane) ClientCAs() []byte {
	return slices.Concat(c.creds.kubeletClients.CertPEM, c.creds.frontProxy.CertPEM)
}

// GatewayAccess returns what the gateway, which is inside the super cluster,
// needs of a control plane that is ready.
func (c *ControlPlane) GatewayAccess() (gatewayaccess.Access, error) {
	access := c.creds.gatewayAccess(c.inside)
	if c.spec.ServiceAccountIssuer == "" {
		return access, nil
	}
	keys, err := keyutil.ParsePublicKeysPEM(access.TokenKeys)
	if err != nil {
		return access, fmt.Errorf("read the keys of tokens: %w", err)
	}
	public, err := serviceaccount.StaticPublicKeysGetter(keys)
	if err != nil {
		return access, fmt.Errorf("publish the keys of tokens: %w", err)
	}
	documents, err := chain.OpenID(c.spec.ServiceAccountIssuer, public)
	if err != nil {
		return access, fmt.Errorf("describe the issuer of tokens: %w", err)
	}
	access.OpenIDConfiguration, _ = documents.GetConfigJSON()
	access.KeySet, _ = documents.GetKeysetJSON()
	return access, nil
}

// AdminKubeconfig returns a self-contained kubeconfig of a cluster admin.
func (c *ControlPlane) AdminKubeconfig() []byte {
	return c.kubeconfig(c.outside, adminUser, c.creds.adminPair())
}

// InternalKubeconfig returns the same for clients inside the super cluster.
func (c *ControlPlane) InternalKubeconfig() []byte {
	return c.kubeconfig(c.inside, adminUser, c.creds.adminPair())
}

// PlatformKubeconfig returns a self-contained kubeconfig of the platform, which
// is inside the super cluster: a cluster admin whose requests do not count as use
// of the control plane.
func (c *ControlPlane) PlatformKubeconfig() []byte {
	return c.kubeconfig(c.inside, platformUser, c.creds.platformPair())
}

func (c *ControlPlane) kubeconfig(at endpoint, user string, pair pki.KeyPair) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.spec.Name] = at.cluster(c.CA())
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.CertPEM, ClientKeyData: pair.KeyPEM,
	}
	config.Contexts[c.spec.Name] = &clientcmdapi.Context{Cluster: c.spec.Name, AuthInfo: user}
	config.CurrentContext = c.spec.Name
	data, _ := clientcmd.Write(*config) // all values can be encoded
	return data
}

// RESTConfig returns a new admin client configuration without client-side rate
// limits.
func (c *ControlPlane) RESTConfig() *rest.Config {
	admin := c.creds.adminPair()
	return &rest.Config{
		Host: c.inside.url(),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: c.inside.serverName, CAData: c.CA(), CertData: admin.CertPEM, KeyData: admin.KeyPEM,
		},
		QPS: -1,
	}
}

// Version returns the Kubernetes version of the control plane.
func (c *ControlPlane) Version() version.Info { return componentversion.Get() }

// Stop stops the control plane and waits until it has stopped or ctx ends. Its
// data is kept, and it can be run again. A control plane that is starting
// finishes its start first, which takes a few seconds.
func (c *ControlPlane) Stop(ctx context.Context) error {
	c.cancel()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("control plane %q is still stopping: %w", c.spec.Name, context.Cause(ctx))
	}
}

// run starts the control plane and serves until ctx ends, which is not an
// error, or a part fails.
func (c *ControlPlane) run(ctx context.Context) error {
	defer c.inlet.shut()
	if err := c.serve(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control plane %q: %w", c.spec.Name, err)
	}
	return nil
}

// serve starts the control plane and serves. Upstream panics if it cannot build
// a part, such as a storage without etcd; that must stop this control plane
// only, not the process.
func (c *ControlPlane) serve(ctx context.Context) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("build the control plane: %v", reason)
		}
	}()
	failed := c.attempts.count(ctx)
	endTurn, err := c.turns.take(ctx, failed)
	if err != nil {
		return err
	}
	defer endTurn()
	c.attempts.begin(ctx, failed)
	defer func() { // a stop is not a failure
		if ctx.Err() != nil {
			c.attempts.forget(ctx)
		}
	}()
	starting, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()

	if c.creds, err = loadCredentials(starting, c.keyring, c.spec, *c.serving.Load()); err != nil {
		return err
	}
	server, err := c.startServer(ctx)
	if err != nil {
		return err
	}
	defer server.stop(ctx)
	c.inlet.serves.Store(&server.handler)
	if err := server.awaitReady(starting); err != nil {
		return err
	}
	running := &shift{start: func() (manager, error) { return c.startControllers(ctx, server) }}
	defer running.stop()
	if running.running, err = running.start(); err != nil {
		return err
	}
	if err := c.awaitUsable(starting, server.client); err != nil {
		return err
	}
	endTurn()
	c.attempts.forget(ctx)
	c.loopback = server.client
	c.activity.begin(time.Now())
	c.awake()
	close(c.ready)
	return c.watch(ctx, server, running)
}

func (c *ControlPlane) startServer(ctx context.Context) (*apiServer, error) {
	if c.spec.Stock {
		return startAPIServer(ctx, c)
	}
	return startTenant(ctx, c)
}

// wrapAPIs wraps what serves authorized requests.
func (c *ControlPlane) wrapAPIs(apis http.Handler) http.Handler {
	return c.count(c.changes.Wrap(c.attribute(apis)))
}

// watch waits for the end, and renews certificates meanwhile. It retries failed
// renewals: they are not urgent.
func (c *ControlPlane) watch(ctx context.Context, server *apiServer, running *shift) error {
	renewal := newRenewal(c.creds.renewalInterval())
	defer renewal.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-server.done:
			return server.ended()
		case err := <-running.failed():
			return err
		case <-c.duty.changed:
			if err := running.follow(c.duty); err != nil {
				return err
			}
		case <-renewal.C:
			renewal.schedule(c.renew(ctx))
		case <-c.renamed:
			c.creds.setServing(*c.serving.Load())
			renewal.schedule(c.renew(ctx))
		}
	}
}

// renew renews certificates that are about to expire or have other names. A
// keyring that does not respond must not delay a hand-over.
func (c *ControlPlane) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	err := c.creds.renew(ctx, time.Now())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to renew certificates, will retry")
	}
	return err
}

// SetExtraSANs replaces the extra names and addresses in the serving certificate.
// It does not wait for the certificate.
func (c *ControlPlane) SetExtraSANs(sans []string) error {
	spec := c.spec
	spec.ExtraSANs = sans
	dnsNames, ips, err := spec.servingNames(c.hosts...)
	if err != nil {
		return err
	}
	c.serving.Store(&servingNames{dnsNames, ips})
	select {
	case c.renamed <- struct{}{}:
	default: // the change before was not seen yet
	}
	return nil
}
