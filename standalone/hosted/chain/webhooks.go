package chain

import (
	"net/http"

	"go.opentelemetry.io/otel/trace"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// ownName is the host in the configuration of webhooks that the apiserver
// itself serves.
const ownName = "kubernetes.default.svc"

// newWebhookResolver returns the resolver of webhooks that are Services: to
// their pods, because this process does not reach Service addresses.
func newWebhookResolver(factory informers.SharedInformerFactory) (webhook.ServiceResolver, error) {
	slices, err := proxy.NewEndpointSliceIndexerGetter(factory.Discovery().V1().EndpointSlices())
	if err != nil {
		return nil, err
	}
	return aggregator.NewEndpointServiceResolver(factory.Core().V1().Services().Lister(), slices), nil
}

// webhookClients configures the clients of a tenant's webhooks, which connect
// through its network. They share no connections with those of other tenants.
func (t *Tenant) webhookClients(traces trace.TracerProvider) webhook.AuthenticationInfoResolverWrapper {
	dial := utilnet.DialFunc(t.spec.Network.Dialer(egress.Webhooks))
	// Upstream uses the dialer of the cluster, and for webhooks with a URL that
	// of the control plane.
	selector := egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Cluster: dial, egressselector.ControlPlane: dial, egressselector.Etcd: dial,
	})
	return boundAnswers(webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, selector, t.configForOwnWebhooks(), traces))
}

// configForOwnWebhooks configures the clients of webhooks that the apiserver
// itself serves. It has no Transport, because upstream adds the certificate of
// the webhook's authority, which would conflict.
func (t *Tenant) configForOwnWebhooks() *rest.Config {
	refuse := t.spec.Network.Dialer(egress.Itself)
	return &rest.Config{
		Dial:          refuse,
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return toItself{own: t.config.Transport, refuse: refuse} },
	}
}

// toItself sends requests to the apiserver of a tenant, as the control plane
// itself. It refuses other hosts: a response may be a redirect.
type toItself struct {
	own    http.RoundTripper
	refuse egress.Dial
}

// RoundTrip implements http.RoundTripper.
func (t toItself) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == ownName || req.URL.Host == ownName+":443" {
		return t.own.RoundTrip(req)
	}
	conn, err := t.refuse(req.Context(), "tcp", req.URL.Host)
	if err == nil {
		err = conn.Close()
	}
	if err == nil {
		err = &egress.RefusedError{Address: req.URL.Host, Reason: egress.Loopback}
	}
	return nil, err
}
