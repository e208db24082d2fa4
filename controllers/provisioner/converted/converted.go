// Package converted is the provisioner of tenants without a control plane:
// vc-gateway converts their requests to requests of the super cluster, and its
// answers back. The provisioner makes a CA for the tenant's users, namespaces, and
// a service account of the super cluster that is confined to these namespaces,
// as which the gateway sends the tenant's requests.
package converted

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	"github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/rolebindings"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// fieldOwner owns what the manager applies.
const fieldOwner = client.FieldOwner("vc-manager")

// recheck is the interval of renewing credentials.
const recheck = 15 * time.Minute

var errNoGateway = errors.New("there is no gateway to convert requests: set --gateway-url")

// Provisioner makes what a converted tenant has in the super cluster.
type Provisioner struct {
	client   client.Client // reads tenants' namespaces from a cache
	live     client.Reader
	secrets  secrets.Keeper
	bindings rolebindings.Keeper
	version  discovery.ServerVersionInterface
	gateway  virtualcluster.Gateway
	// sharesDNS: there is a DNS that tenants share.
	sharesDNS bool
	now       func() time.Time

	finalizing *finalizing
}

var _ provisioner.Provisioner = (*Provisioner)(nil)

// Registration offers Converted with a gateway, and with a DNS that tenants share or
// not.
func Registration(gateway virtualcluster.Gateway, sharesDNS bool) provisioner.Registration {
	return provisioner.Registration{
		Name:    tenancyv1alpha1.ProvisionerConverted,
		Summary: "no control plane: vc-gateway converts the tenant's requests to requests of the super cluster",
		New: func(mgr manager.Manager) (provisioner.Provisioner, error) {
			if gateway.URL == "" {
				return nil, errNoGateway
			}
			version, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
			if err != nil {
				return nil, fmt.Errorf("make a discovery client: %w", err)
			}
			p := New(mgr.GetClient(), mgr.GetAPIReader(), version, gateway, fencedBy(mgr.GetConfig(), mgr.GetClient()), mgr.GetRESTMapper())
			p.sharesDNS = sharesDNS
			if err := errors.Join(addReleaser(mgr, p.finalizing), addGranter(mgr)); err != nil {
				return nil, fmt.Errorf("set up the reconcilers of what tenants may do: %w", err)
			}
			return p, nil
		},
	}
}

// New makes a Provisioner. The client reads namespaces of tenants from a cache,
// and live around it. Fenced and the mapper are for deletions.
func New(
	c client.Client, live client.Reader, version discovery.ServerVersionInterface, gateway virtualcluster.Gateway,
	fenced Fenced, mapper meta.RESTMapper,
) *Provisioner {
	return &Provisioner{
		client: c, live: live, version: version, gateway: gateway, now: time.Now,
		finalizing: &finalizing{fenced: fenced, mapper: mapper, now: time.Now},
		secrets:    secrets.Keeper{Client: c, Live: live, Owner: string(fieldOwner)},
		bindings: rolebindings.Keeper{
			Client: c, Live: live, Owner: string(fieldOwner), Finalizers: []string{names.ConvertedFinalizer},
		},
	}
}

// Capabilities returns that the gateway converts the requests.
func (*Provisioner) Capabilities() provisioner.Capabilities {
	return provisioner.Capabilities{Network: true, Converted: true}
}

// Ensure makes what the tenant lacks.
func (p *Provisioner) Ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	if wrong := Unsupported(&vc.Spec); len(wrong) > 0 {
		return provisioner.ControlPlane{}, provisioner.Failf(tenancyv1alpha1.ReasonInvalidSpec, "%v", wrong.ToAggregate())
	}
	version, err := p.version.ServerVersion()
	if err != nil {
		return provisioner.ControlPlane{}, fmt.Errorf("get the version of the super cluster: %w", err)
	}
	if err := p.ensureAccount(ctx, vc); err != nil {
		return provisioner.ControlPlane{}, err
	}
	if err := p.ensureShelf(ctx, vc); err != nil {
		return provisioner.ControlPlane{}, err
	}
	ca, known, err := p.gateway.CA()
	if err != nil || !known {
		return provisioner.ControlPlane{Message: "Waiting for the CA of the gateway"}, err
	}
	forPods := converted.Gateway{URL: p.gateway.ForPods(), CA: ca}
	if forPods.DNS, err = p.ensureInside(ctx, vc, forPods); err != nil {
		return provisioner.ControlPlane{}, err
	}
	if err := p.ensureAPIService(ctx, vc, forPods); err != nil {
		return provisioner.ControlPlane{}, err
	}
	keys, err := p.ensureCredentials(ctx, vc)
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	kubeconfig, err := keys.kubeconfig(p.gateway.Endpoint(vc.Status.ClusterNamespace), ca, vc.Status.ClusterNamespace)
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	return provisioner.ControlPlane{
		Ready: true, Endpoint: p.gateway.Endpoint(vc.Status.ClusterNamespace), Version: version.GitVersion,
		Kubeconfig: kubeconfig, RecheckAfter: recheck,
		Gateway: gatewayaccess.Access{
			Server: p.gateway.ForPods(), DNS: forPods.DNS, CA: ca, ClientCA: keys.authorities, Token: keys.token, ContinueKey: keys.continueKey,
		},
	}, nil
}

// ensureInside makes the tenant's namespaces, and returns the address of the DNS in
// them, which all have in an annotation.
func (p *Provisioner) ensureInside(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, gateway converted.Gateway,
) (string, error) {
	known, err := p.dnsAddress(ctx, vc)
	if err != nil {
		return "", err
	}
	gateway.DNS = known
	if err := p.ensureNamespaces(ctx, vc, gateway); err != nil {
		return "", err
	}
	if gateway.DNS, err = p.ensureDNS(ctx, vc); err != nil || gateway.DNS == known {
		return gateway.DNS, err
	}
	return gateway.DNS, p.ensureNamespaces(ctx, vc, gateway)
}
