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

// Admin returns the client configuration of a tenant's admin, whose credentials
// are permanent. A kubeconfig that would run programs or read files is rejected.
func Admin(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*rest.Config, error) {
	return admin(ctx, super, vc, names.AdminKubeconfigKey)
}

// Internal returns the same for clients inside the super cluster, if these have
// an address of their own.
func Internal(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*rest.Config, error) {
	return admin(ctx, super, vc, names.InternalKubeconfigKey)
}

// admin reads the kubeconfig of a tenant's admin at a key, or the usual one.
func admin(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster, preferred string) (*rest.Config, error) {
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
	data := secret.Data[preferred]
	if len(data) == 0 {
		data = secret.Data[names.AdminKubeconfigKey]
	}
	config, err := kubeconfig.RESTConfig(data)
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
