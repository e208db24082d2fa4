package chain

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server/egressselector"
	api "k8s.io/kubernetes/pkg/apis/core"
	v1 "k8s.io/kubernetes/pkg/apis/core/v1"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/kubelet/client"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// idleConnections is the number of idle connections to one kubelet, as
// client-go has it.
const idleConnections = 25

// connections connect a tenant's apiserver to kubelets, and proxied requests to
// pods, Services and nodes. Each tenant has transports of its own: equal
// addresses of two tenants are different servers. Upstream's handlers of
// upgraded requests look for the dialer in a transport, and dial by themselves
// when they do not find it; so these are the transports that handlers get.
type connections struct {
	addresses client.ConnectionInfoGetter
	services  rest.Redirector

	kubelets   *http.Transport
	unverified *http.Transport
	proxies    *http.Transport
}

var _ client.ConnectionInfoGetter = (*connections)(nil)

func (c *Chain) newConnections(t *Tenant) (*connections, error) {
	verified, err := kubeletTLS(&t.spec)
	if err != nil {
		return nil, err
	}
	unverified := verified.Clone()
	unverified.RootCAs, unverified.InsecureSkipVerify = nil, true
	dial := t.spec.Network.Dialer(egress.Kubelets)
	n := &connections{
		addresses:  c.core.byAddress,
		kubelets:   kubeletTransport(dial, verified),
		unverified: kubeletTransport(dial, unverified),
		// Not a clone: clones share the connections of HTTP/2.
		proxies: controlplaneapiserver.CreateProxyTransport(),
	}
	if t.spec.KubeletsByHostname {
		n.addresses = c.core.byHostname
	}
	n.proxies.Proxy, n.proxies.DialContext = nil, t.spec.Network.Dialer(egress.Proxies)
	// A proxy to a Service allocates nothing.
	n.services, _, _, err = servicestore.NewREST(c.stores, api.IPv4Protocol, nil, nil, c.core.endpoints, c.core.pods, n.proxies)
	if err != nil {
		return nil, fmt.Errorf("create the proxy to Services: %w", err)
	}
	return n, nil
}

// GetConnectionInfo implements client.ConnectionInfoGetter.
func (n *connections) GetConnectionInfo(ctx context.Context, node types.NodeName) (*client.ConnectionInfo, error) {
	info, err := n.addresses.GetConnectionInfo(ctx, node)
	if err != nil {
		return nil, err
	}
	own := *info
	own.Transport, own.InsecureSkipTLSVerifyTransport = n.kubelets, n.unverified
	return &own, nil
}

// kubeletTLS returns how the apiserver of a tenant authenticates to kubelets
// and verifies them. Without an authority, it does not verify them.
func kubeletTLS(spec *Spec) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if spec.KubeletClient == nil {
				return &tls.Certificate{}, nil
			}
			pair, err := tls.X509KeyPair(spec.KubeletClient())
			return &pair, err
		},
		InsecureSkipVerify: len(spec.KubeletCA) == 0, //nolint:gosec // as kube-apiserver without --kubelet-certificate-authority
	}
	if len(spec.KubeletCA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(spec.KubeletCA) {
			return nil, errors.New("read the CA of kubelets: it has no certificate")
		}
	}
	return config, nil
}

func kubeletTransport(dial egress.Dial, config *tls.Config) *http.Transport {
	transport := utilnet.SetTransportDefaults(&http.Transport{
		DialContext: dial, TLSClientConfig: config, MaxIdleConnsPerHost: idleConnections,
	})
	transport.Proxy = nil // HTTP proxies of the process would resolve names themselves
	return transport
}

// newAddresses returns upstream's resolver of the addresses of kubelets. It
// connects to nothing.
func (c *Chain) newAddresses(nodes rest.Getter, preferred ...corev1.NodeAddressType) (client.ConnectionInfoGetter, error) {
	config := c.config.KubeAPIs.KubeletClientConfig
	config.Lookup, config.PreferredAddressTypes = lookupClosed, nil
	for _, each := range preferred {
		config.PreferredAddressTypes = append(config.PreferredAddressTypes, string(each))
	}
	return client.NewNodeConnectionInfoGetter(nodeGetter{nodes}, config)
}

// lookupClosed returns the dialer of what belongs to no tenant.
func lookupClosed(egressselector.NetworkContext) (utilnet.DialFunc, error) {
	return utilnet.DialFunc(egress.Closed{}.Dialer(egress.Kubelets)), nil
}

// nodeGetter reads nodes from the storage.
type nodeGetter struct{ rest.Getter }

// Get implements client.NodeGetter.
func (g nodeGetter) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error) {
	found, err := g.Getter.Get(ctx, name, &options)
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	if err := v1.Convert_core_Node_To_v1_Node(found.(*api.Node), node, nil); err != nil {
		return nil, fmt.Errorf("convert node %s: %w", name, err)
	}
	return node, nil
}
