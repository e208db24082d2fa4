package hosted

import (
	"context"
	"fmt"
	"net"
	"net/url"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// ownName is the host and port in the configuration of webhooks that the
// apiserver itself serves.
const ownName = "kubernetes.default.svc:443"

// newConfig does what app.NewConfig does, and routes the connections that users
// of the apiserver cause through the network. app.NewConfig accepts an egress
// selector only as a file, which has no dialers.
func newConfig(opts options.CompletedOptions, network egress.Network) (*app.Config, error) {
	generic, informers, storage, err := controlplaneapiserver.BuildGenericConfig(opts.CompletedOptions,
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensions.Scheme, aggregatorscheme.Scheme},
		controlplane.DefaultAPIResourceConfigSource(), generatedopenapi.GetOpenAPIDefinitions)
	if err != nil {
		return nil, err
	}
	// Not earlier: connections to etcd do not use the network.
	generic.EgressSelector = selector(network, egress.Webhooks)
	// Admission keeps this one, for the webhooks that the apiserver serves.
	forWebhooks := generic.LoopbackClientConfig
	c := &app.Config{Options: opts}
	kubeAPIs, resolver, admission, err := app.CreateKubeAPIServerConfig(opts, generic, informers, storage)
	if err != nil {
		return nil, err
	}
	c.KubeAPIs = kubeAPIs
	setKubeletDialers(kubeAPIs, network)
	// Clients with a dialer share no connections, so the others get a
	// configuration without one.
	generic.LoopbackClientConfig = rest.CopyConfig(forWebhooks)
	if forWebhooks.Dial, err = dialItself(generic.LoopbackClientConfig.Host, network); err != nil {
		return nil, err
	}

	proxies := kubeAPIs.ControlPlane.ProxyTransport
	c.ApiExtensions, err = controlplaneapiserver.CreateAPIExtensionsConfig(*generic, informers, admission,
		opts.CompletedOptions, opts.MasterCount, resolver, webhook.NewDefaultAuthenticationInfoResolverWrapper(
			proxies, generic.EgressSelector, forWebhooks, generic.TracerProvider))
	if err != nil {
		return nil, err
	}
	c.Aggregator, err = controlplaneapiserver.CreateAggregatorConfig(*generic, opts.CompletedOptions, informers,
		resolver, proxies, kubeAPIs.ControlPlane.PeerProxy, admission)
	if err != nil {
		return nil, err
	}
	c.Aggregator.GenericConfig.EgressSelector = selector(network, egress.APIServices)
	return c, nil
}

// setKubeletDialers sets the dialers for kubelets, and for proxied connections
// to pods, Services and nodes.
func setKubeletDialers(config *controlplane.Config, network egress.Network) {
	config.KubeletClientConfig.Lookup = selector(network, egress.Kubelets).Lookup
	proxies := config.ControlPlane.ProxyTransport.Clone()
	proxies.Proxy = nil // HTTP proxies of the process would resolve names themselves
	proxies.DialContext = network.Dialer(egress.Proxies)
	config.ControlPlane.ProxyTransport = proxies
}

// selector returns an egress selector with one purpose for all connections.
// Upstream uses the dialer of the cluster, and for webhooks with a URL that of
// the control plane.
func selector(network egress.Network, purpose egress.Purpose) *egressselector.EgressSelector {
	dial := utilnet.DialFunc(network.Dialer(purpose))
	return egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Cluster: dial, egressselector.ControlPlane: dial, egressselector.Etcd: dial,
	})
}

// dialItself returns a dialer that connects to the apiserver only. Requests to
// webhooks that the apiserver serves itself contain its own credentials, and
// their response may be a redirect.
func dialItself(host string, network egress.Network) (func(context.Context, string, string) (net.Conn, error), error) {
	own, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("parse the apiserver's own address: %w", err)
	}
	refuse := network.Dialer(egress.Itself)
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		if address != own.Host && address != ownName {
			return refuse(ctx, kind, address)
		}
		var dialer net.Dialer
		return dialer.DialContext(ctx, kind, own.Host)
	}, nil
}
