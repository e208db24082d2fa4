// Package access connects a platform admin to a tenant: it reads the tenant's
// kubeconfig, finds a way to its apiserver, and issues credentials that expire.
//
// The apiserver of a tenant is not trusted: what is read of it is bounded, and
// its certificate is verified whichever way leads to it.
package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
)

// reachTimeout is how long an apiserver may take to complete a TLS handshake. A
// control plane that sleeps wakes in this time.
const reachTimeout = 15 * time.Second

// Reader reads a client configuration of a tenant's admin, whose credentials are
// permanent. A kubeconfig that would run programs or read files is rejected.
type Reader func(context.Context, client.Reader, *tenancyv1alpha1.VirtualCluster) (*rest.Config, error)

// Admin returns the configuration for the address of the control plane, or of the
// gateway for a tenant without one.
func Admin(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*rest.Config, error) {
	return admin(ctx, super, vc, kubeconfig.ForAdmin)
}

// ForUsers returns the one that the users of the tenant get by default.
func ForUsers(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*rest.Config, error) {
	return admin(ctx, super, vc, kubeconfig.ForUsers)
}

// Internal returns the one for clients inside the super cluster, if these have an
// address of their own, and otherwise that of Admin.
func Internal(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*rest.Config, error) {
	return admin(ctx, super, vc, func(secret map[string][]byte) []byte {
		if internal := secret[names.InternalKubeconfigKey]; len(internal) > 0 {
			return internal
		}
		return kubeconfig.ForAdmin(secret)
	})
}

// Gateway returns the one through the gateway.
func Gateway(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*rest.Config, error) {
	missing := false
	config, err := admin(ctx, super, vc, func(secret map[string][]byte) []byte {
		missing = len(secret[names.GatewayKubeconfigKey]) == 0
		return secret[names.GatewayKubeconfigKey]
	})
	if missing {
		return nil, &exit.Error{
			Code: exit.Failed, Err: fmt.Errorf("tenant %s/%s has no kubeconfig through the gateway", vc.Namespace, vc.Name),
			Next: "See whether the installation has a gateway (vcGateway.enabled of the chart); " +
				"it takes no client certificates for an External control plane",
		}
	}
	return config, err
}

// admin reads the kubeconfig of a tenant's admin that is chosen of a Secret.
func admin(
	ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster, choose func(secret map[string][]byte) []byte,
) (*rest.Config, error) {
	describe := fmt.Sprintf("kubectl vc describe %s -n %s", vc.Name, vc.Namespace)
	if vc.Spec.Paused {
		return nil, &exit.Error{
			Code: exit.Unreachable, Err: fmt.Errorf("tenant %s/%s is paused: its control plane is stopped", vc.Namespace, vc.Name),
			Next: fmt.Sprintf("Start it: kubectl vc wake %s -n %s --wait", vc.Name, vc.Namespace),
		}
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	if key.Namespace == "" {
		return nil, &exit.Error{
			Code: exit.Unreachable, Err: fmt.Errorf("tenant %s/%s has no control plane yet", vc.Namespace, vc.Name),
			Next: "See its conditions: " + describe,
		}
	}
	if err := super.Get(ctx, key, secret); err != nil {
		return nil, exit.With(fmt.Errorf("get Secret %s with the kubeconfig of tenant %s/%s: %w", key, vc.Namespace, vc.Name, err),
			"See whether its control plane is ready: %s", describe)
	}
	config, err := kubeconfig.RESTConfig(choose(secret.Data))
	if err != nil {
		return nil, exit.With(fmt.Errorf("read the kubeconfig in Secret %s: %w", key, err), "Correct the kubeconfig of the tenant: %s", describe)
	}
	return config, nil
}

// HTTPClient returns a client of a tenant that reads a bounded number of bytes
// of each answer.
func HTTPClient(ctx context.Context, config *rest.Config) (*http.Client, error) {
	return tenanthttp.NewClient(ctx, config, tenanthttp.Options{Limits: tenanthttp.DefaultLimits(), Untrusted: true})
}

// Client returns a client for the objects of a tenant.
func Client(ctx context.Context, config *rest.Config, options client.Options) (client.Client, error) {
	bounded, err := HTTPClient(ctx, config)
	if err != nil {
		return nil, err
	}
	options.HTTPClient = bounded
	return client.New(config, options)
}

// Reach completes a TLS handshake with the apiserver of a configuration. It
// sends no credentials.
func Reach(ctx context.Context, config *rest.Config) error {
	address, err := Address(config.Host)
	if err != nil {
		return err
	}
	anonymous := rest.AnonymousClientConfig(config)
	verified, err := rest.TLSConfigFor(anonymous)
	if err != nil {
		return fmt.Errorf("read the TLS settings of the kubeconfig: %w", err)
	}
	if verified == nil {
		verified = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: verified}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	return conn.Close()
}

// Address returns the host and port of the URL of an apiserver.
func Address(server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Hostname() == "" {
		return "", errors.New("the server of the kubeconfig is no URL with a host")
	}
	port := parsed.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(parsed.Hostname(), port), nil
}
