package chain

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/proxy"
	kubeinformers "k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	clienttransport "k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	aggregatorserver "k8s.io/kube-aggregator/pkg/apiserver"
	remoteavailability "k8s.io/kube-aggregator/pkg/controllers/status/remote"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

var errNotAvailable = errors.New("the aggregated API is not available")

// remoteAPI is a version of a group that a Service serves. It repeats the proxy
// of upstream's aggregator, which can be created only with files of the client
// certificate and shares transports.
type remoteAPI struct {
	aggregator *apiAggregator
	target     atomic.Pointer[target]
}

// target is where the requests are sent.
type target struct {
	service   *apiregistrationv1.ServiceReference
	available bool
	transport *http.Transport
	err       error
}

// update follows a change of the APIService.
func (a *remoteAPI) update(service *apiregistrationv1.APIService) {
	next := &target{
		service:   service.Spec.Service,
		available: helper.IsAPIServiceConditionTrue(service, apiregistrationv1.Available),
	}
	config := remoteavailability.BuildTransportConfig(a.aggregator.dialer(), nil, nil, service)
	config.TLS.GetCertHolder = &clienttransport.GetCertHolder{GetCert: a.aggregator.tenant.frontProxyCertificate}
	encryption, err := clienttransport.TLSConfigFor(config)
	next.err = err
	next.transport = utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: encryption, DialContext: config.DialHolder.Dial})
	next.transport.Proxy = nil // HTTP proxies of the process would resolve names themselves
	if last := a.target.Swap(next); last != nil {
		last.transport.CloseIdleConnections()
	}
}

func (a *remoteAPI) close() {
	if last := a.target.Load(); last != nil {
		last.transport.CloseIdleConnections()
	}
}

// ServeHTTP implements http.Handler.
func (a *remoteAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if to := a.target.Load(); to == nil || !to.available {
		unavailable(w, r, errNotAvailable)
		return
	}
	a.proxy(w, r)
}

// proxy sends a request to the Service, with the user in headers.
func (a *remoteAPI) proxy(w http.ResponseWriter, r *http.Request) {
	to := a.target.Load()
	who, ok := apirequest.UserFrom(r.Context())
	if to == nil || to.err != nil || !ok {
		unavailable(w, r, errNotAvailable)
		return
	}
	location, err := a.aggregator.resolver.ResolveEndpoint(to.service.Namespace, to.service.Name, *to.service.Port)
	if err != nil {
		unavailable(w, r, errNotAvailable)
		return
	}
	location = &url.URL{Scheme: secureScheme, Host: location.Host, Path: r.URL.Path, RawQuery: r.URL.Query().Encode()}
	request, cancel := proxy.NewRequestForProxy(location, r)
	defer cancel()
	upgrade := httpstream.IsUpgradeRequest(r)
	if upgrade { // is sent without the round tripper
		clienttransport.SetAuthProxyHeaders(request, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
	}
	sender := clienttransport.NewAuthProxyRoundTripper(who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra(), to.transport)
	handler := utilproxy.NewUpgradeAwareHandler(location, sender, true, upgrade, proxyFailure{})
	handler.RejectForwardingRedirects = true
	handler.ServeHTTP(w, request)
}

// proxyFailure answers requests that cannot be sent. It tells which address was
// dialed only if that is not allowed, as the condition of the APIService does.
type proxyFailure struct{}

// Error implements proxy.ErrorResponder.
func (proxyFailure) Error(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*egress.RefusedError](err); ok {
		unavailable(w, r, refused)
		return
	}
	unavailable(w, r, errNotAvailable)
}

// frontProxyClient returns the certificate with which the tenant's aggregator
// connects to aggregated APIs.
func (t *Tenant) frontProxyClient() (cert, key []byte) {
	if t.spec.FrontProxyClient == nil {
		return nil, nil
	}
	return t.spec.FrontProxyClient()
}

// frontProxyCertificate returns the same for TLS, for each connection: it is
// renewed from time to time.
func (t *Tenant) frontProxyCertificate() (*tls.Certificate, error) {
	cert, key := t.frontProxyClient()
	if len(cert) == 0 {
		return &tls.Certificate{}, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the aggregator: %w", err)
	}
	return &pair, nil
}

// apiServiceResolver returns the pods of a Service, or its external name, which
// upstream's resolver of endpoints does not support.
type apiServiceResolver struct {
	aggregatorserver.ServiceResolver

	services listers.ServiceLister
}

func newAPIServiceResolver(factory kubeinformers.SharedInformerFactory) (aggregatorserver.ServiceResolver, error) {
	endpoints, err := newWebhookResolver(factory)
	if err != nil {
		return nil, fmt.Errorf("find the endpoints of aggregated APIs: %w", err)
	}
	return apiServiceResolver{ServiceResolver: endpoints, services: factory.Core().V1().Services().Lister()}, nil
}

// ResolveEndpoint implements aggregatorserver.ServiceResolver. Upstream's
// checks of availability call it in goroutines that do not recover.
func (r apiServiceResolver) ResolveEndpoint(namespace, name string, port int32) (_ *url.URL, err error) {
	defer views.Recovered(func(panicked error) {
		logPanic(panicked, "Panicked while resolving an aggregated API")
		err = panicked
	})
	service, err := r.services.Services(namespace).Get(name)
	if err == nil && service.Spec.Type == corev1.ServiceTypeExternalName {
		return proxy.ResolveCluster(r.services, namespace, name, port)
	}
	return r.ServiceResolver.ResolveEndpoint(namespace, name, port)
}
