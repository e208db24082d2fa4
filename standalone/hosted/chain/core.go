package chain

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/kubelet/client"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	noderest "k8s.io/kubernetes/pkg/registry/core/node/rest"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podrest "k8s.io/kubernetes/pkg/registry/core/pod/rest"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/kubernetes/pkg/registry/core/service"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// core has the registries of the core API group that the parts of tenants use.
type core struct {
	pods      *podstore.REST
	nodes     *nodestore.REST
	endpoints *endpointsstore.REST
	services  *servicestore.REST
	// byAddress and byHostname find the address of a kubelet.
	byAddress, byHostname client.ConnectionInfoGetter
}

// closeCore makes upstream's own registries connect to nothing, in case that
// one of them is not replaced.
func (c *Chain) closeCore() {
	c.config.KubeAPIs.KubeletClientConfig.Lookup = lookupClosed
	closed := controlplaneapiserver.CreateProxyTransport()
	closed.Proxy, closed.DialContext = nil, egress.Closed{}.Dialer(egress.Proxies)
	c.config.KubeAPIs.ControlPlane.ProxyTransport = closed
}

// divideCore divides the core API group among tenants. It replaces those
// registries of upstream that keep something of one cluster: clients,
// allocators, transports.
func (c *Chain) divideCore(options generic.RESTOptionsGetter, resources map[string]rest.Storage) error {
	if err := c.addCore(options, resources); err != nil {
		return err
	}
	if err := c.findKubelets(); err != nil {
		return err
	}
	claims, err := take[*claimstore.REST](resources, "persistentvolumeclaims")
	if err != nil {
		return err
	}
	containDecorator(claims.Store)
	containDecorator(c.core.services.Store)
	resources["services"] = serviceRegistry{shared: c.core.services, chain: c}
	// Upstream's connects to this machine and to etcd, and discovery shows it.
	delete(resources, "componentstatuses")
	status, err := take[*servicestore.StatusREST](resources, "services/status")
	if err != nil {
		return err
	}
	resources["services/status"] = serviceStatus{status, c}
	eviction, err := take[*podstore.EvictionREST](resources, "pods/eviction")
	if err != nil {
		return err
	}
	resources["pods/eviction"] = evictions{eviction, c}
	logs, err := take[*podrest.LogREST](resources, "pods/log")
	if err != nil {
		return err
	}
	resources["pods/log"] = podLogs{logs, c}
	return c.divideConnecters(resources)
}

// findKubelets prepares how the connections of tenants find kubelets.
func (c *Chain) findKubelets() (err error) {
	c.core.byAddress, err = c.newAddresses(c.core.nodes, corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName)
	if err != nil {
		return err
	}
	c.core.byHostname, err = c.newAddresses(c.core.nodes, corev1.NodeHostName, corev1.NodeInternalIP, corev1.NodeExternalIP)
	return err
}

// take returns a registry of upstream.
func take[T rest.Storage](resources map[string]rest.Storage, name string) (T, error) {
	found, ok := resources[name].(T)
	if !ok {
		return found, fmt.Errorf("divide %s among tenants: upstream's registry is a %T", name, resources[name])
	}
	return found, nil
}

// divideConnecters gives each tenant its own registries of what connects.
func (c *Chain) divideConnecters(resources map[string]rest.Storage) error {
	pods, allowed := c.core.pods.Store, authorizers{c}
	for name, create := range map[string]func(*connections) connectable{
		"pods/attach": func(n *connections) connectable {
			return &podrest.AttachREST{Store: pods, KubeletConn: n, Authorizer: allowed}
		},
		"pods/exec": func(n *connections) connectable {
			return &podrest.ExecREST{Store: pods, KubeletConn: n, Authorizer: allowed}
		},
		"pods/portforward": func(n *connections) connectable {
			return &podrest.PortForwardREST{Store: pods, KubeletConn: n, Authorizer: allowed}
		},
		"pods/proxy": func(n *connections) connectable {
			return &podrest.ProxyREST{Store: pods, ProxyTransport: n.proxies}
		},
		"nodes/proxy": func(n *connections) connectable {
			return &noderest.ProxyREST{Store: c.core.nodes.Store, Connection: n, ProxyTransport: n.proxies}
		},
		"services/proxy": func(n *connections) connectable {
			return &service.ProxyREST{Redirector: n.services, ProxyTransport: n.proxies}
		},
	} {
		shared, err := take[connectable](resources, name)
		if err != nil {
			return err
		}
		resources[name] = connecter{connectable: shared, chain: c, create: create}
	}
	return nil
}

// connectable is a registry that connects.
type connectable interface {
	rest.Storage
	rest.Connecter
}

// connecter connects each request by the connections of its tenant.
type connecter struct {
	connectable

	chain  *Chain
	create func(*connections) connectable
}

// Connect implements rest.Connecter.
func (c connecter) Connect(ctx context.Context, id string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	own, err := c.chain.connectionsOf(ctx)
	if err != nil {
		return nil, err
	}
	return c.create(own).Connect(ctx, id, options, responder)
}

// podLogs reads each log by the connections of the request's tenant.
type podLogs struct {
	*podrest.LogREST

	chain *Chain
}

// Get implements rest.GetterWithOptions.
func (l podLogs) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	own, err := l.chain.connectionsOf(ctx)
	if err != nil {
		return nil, err
	}
	return (&podrest.LogREST{Store: l.Store, KubeletConn: own}).Get(ctx, name, options)
}

func (c *Chain) connectionsOf(ctx context.Context) (*connections, error) {
	t, err := c.tenant(ctx)
	if err != nil {
		return nil, err
	}
	return t.connections.get()
}
