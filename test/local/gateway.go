package local

import (
	"context"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// GatewayConfig returns the configuration of a tenant's admin through the
// gateway.
func (s *SuperCluster) GatewayConfig(ctx context.Context, t *Tenant) (*rest.Config, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}
	if err := s.Client.Get(ctx, key, secret); err != nil {
		return nil, err
	}
	data, ok := secret.Data[names.GatewayKubeconfigKey]
	if !ok {
		return nil, fmt.Errorf("read Secret %s: it has no key %s", key, names.GatewayKubeconfigKey)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Gateway is a vc-gateway that runs in this process, beside that of
// vc-standalone.
type Gateway struct {
	// Address is where it serves, on the loopback interface.
	Address string
	// Secret has its serving certificate, with the CA in ca.crt.
	Secret types.NamespacedName

	cancel context.CancelFunc
	ended  chan error
}

// GatewayAccount installs config/rbac for vc-gateway and returns the
// configuration of its service account.
func (s *SuperCluster) GatewayAccount(ctx context.Context) (*rest.Config, error) {
	config, err := s.programConfig(ctx, rbac.Gateway)
	if err != nil {
		return nil, err
	}
	return config, waitForRight(ctx, config, authorizationv1.ResourceAttributes{
		Verb: "create", Resource: "secrets", Namespace: rbac.Namespace, Name: "vc-gateway-tls",
	})
}

// StartGateway starts a gateway with the permissions of a configuration.
func StartGateway(config *rest.Config, logger logr.Logger, change ...func(*app.Options)) (*Gateway, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		Address: listener.Addr().String(), Secret: types.NamespacedName{Namespace: rbac.Namespace, Name: "vc-gateway-tls"},
		ended: make(chan error, 1),
	}
	opts := app.DefaultOptions()
	opts.Options = component.Defaults()
	opts.Listeners, opts.Logger, opts.Registerer = []net.Listener{listener}, logger, prometheus.NewRegistry()
	opts.CertSecret, opts.Hosts = g.Secret, []string{"127.0.0.1", "localhost"}
	opts.MetricsBindAddress, opts.HealthProbeBindAddress = "0", "0"
	for _, f := range change {
		f(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	go func() { g.ended <- app.Run(ctx, config, opts) }()
	return g, nil
}

// Stop stops the gateway and waits for it. It is idempotent.
func (g *Gateway) Stop() error {
	g.cancel()
	err := <-g.ended
	g.ended <- err
	return err
}
