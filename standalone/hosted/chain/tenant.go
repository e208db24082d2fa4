package chain

import (
	"fmt"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// Spec describes a tenant of a chain.
type Spec struct {
	// Name identifies the tenant on the chain. Its keys in etcd are those of
	// this name in the keyspace.
	Name string
	// ClusterDomain is the DNS domain of the cluster. It is part of the issuer
	// of service account tokens.
	ClusterDomain string
	// ServiceCIDR is the range of ClusterIPs.
	ServiceCIDR net.IPNet
	// ClientCA verifies client certificates, in PEM.
	ClientCA []byte
	// SigningKey signs service account tokens, in PEM.
	SigningKey []byte
	// KubeletCA verifies what answers in the place of kubelets, in PEM.
	KubeletCA []byte
	// KubeletClient returns the certificate and its key, in PEM, with which the
	// apiserver connects to kubelets. It is renewed from time to time.
	KubeletClient func() (cert, key []byte)
	// FrontProxyCA and FrontProxyClient are the same for aggregated APIs: the
	// authority, which is published, and the client certificate.
	FrontProxyCA     []byte
	FrontProxyClient func() (cert, key []byte)
	// Network dials the connections that users of the apiserver cause.
	Network egress.Network
}

// Tenant is one control plane of a chain: what upstream keeps in memory about a
// cluster, created when it is first needed.
type Tenant struct {
	spec Spec
	// client sends requests as the control plane itself.
	client *kubernetes.Clientset
	config *rest.Config

	// informers are those of the tenant's parts. Reading one starts it.
	informers informers.SharedInformerFactory

	filters   lazy[http.Handler]
	policy    lazy[*rbac.RBACAuthorizer]
	admission lazy[admission.Interface]
}

func (c *Chain) newTenant(spec Spec) (*Tenant, error) {
	t := &Tenant{spec: spec, config: inProcess(http.HandlerFunc(c.serveTenant), spec.Name)}
	var err error
	if t.client, err = kubernetes.NewForConfig(t.config); err != nil {
		return nil, fmt.Errorf("create a client of tenant %q: %w", spec.Name, err)
	}
	t.informers = c.opts.Informers(spec.Name, t.client)
	t.filters.create = func() (http.Handler, error) { return c.newFilters(t), nil }
	t.policy.create = func() (*rbac.RBACAuthorizer, error) { return newPolicy(t.informers), nil }
	t.admission.create = func() (admission.Interface, error) { return c.newAdmission(t) }
	return t, nil
}

// Name returns the name of the tenant.
func (t *Tenant) Name() string { return t.spec.Name }

// Config returns a client configuration of the control plane itself. Its
// requests stay in the process.
func (t *Tenant) Config() *rest.Config { return rest.CopyConfig(t.config) }

// Handler returns the apiserver of the tenant.
func (c *Chain) Handler(t *Tenant) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.serveTenant(w, r.WithContext(keyspace.NewContext(r.Context(), t.spec.Name)))
	})
}
