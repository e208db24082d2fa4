package chain

import (
	"go.opentelemetry.io/otel/trace"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

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
