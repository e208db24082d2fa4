// Package webhooks calls the webhooks of converted tenants: their Services lead to
// pods of the tenant, all connections go through the tenant's network, and
// answers are bounded.
package webhooks

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/webhookanswers"
)

// Services resolves Services of a tenant to addresses of their pods. It asks for
// each connection: webhooks keep theirs.
type Services struct{ Tenant kubernetes.Interface }

// resolving is how long it may take.
const resolving = 5 * time.Second

// ResolveEndpoint implements webhook.ServiceResolver.
func (s Services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	ctx, cancel := context.WithTimeout(context.Background(), resolving)
	defer cancel()
	live := live{ctx: ctx, tenant: s.Tenant}
	return proxy.ResolveEndpoint(live, live, namespace, name, port)
}

// live reads Services and their endpoints.
type live struct {
	ctx       context.Context //nolint:containedctx // of the interface that upstream expects
	tenant    kubernetes.Interface
	namespace string
}

// errNoList is a list that upstream does not request.
var errNoList = errors.New("services are not listed")

// List implements listersv1.ServiceLister.
func (live) List(labels.Selector) ([]*corev1.Service, error) { return nil, errNoList }

// Services implements listersv1.ServiceLister.
func (l live) Services(namespace string) listersv1.ServiceNamespaceLister {
	l.namespace = namespace
	return l
}

// Get implements listersv1.ServiceNamespaceLister.
func (l live) Get(name string) (*corev1.Service, error) {
	return l.tenant.CoreV1().Services(l.namespace).Get(l.ctx, name, metav1.GetOptions{})
}

// GetEndpointSlices implements proxy.EndpointSliceGetter.
func (l live) GetEndpointSlices(namespace, service string) ([]*discoveryv1.EndpointSlice, error) {
	list, err := l.tenant.DiscoveryV1().EndpointSlices(namespace).List(l.ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}).String(),
	})
	if err != nil {
		return nil, err
	}
	slices := make([]*discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	return slices, nil
}

// Timeout is how long a call may take, also if it has no context that ends: less
// than the super cluster waits.
const Timeout = 28 * time.Second

// Clients returns what makes the clients of a tenant's webhooks: they have no
// credentials, connect through the tenant's network only, and their answers are
// bounded.
func Clients(network egress.Network) webhook.AuthenticationInfoResolverWrapper {
	config := func() *rest.Config {
		return &rest.Config{
			Dial:          network.Dialer(egress.Webhooks),
			Proxy:         func(*http.Request) (*url.URL, error) { return nil, nil },
			WrapTransport: func(next http.RoundTripper) http.RoundTripper { return yielding{webhookanswers.Bound(next)} },
			Timeout:       Timeout,
		}
	}
	return func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc:        func(string) (*rest.Config, error) { return config(), nil },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return config(), nil },
		}
	}
}
