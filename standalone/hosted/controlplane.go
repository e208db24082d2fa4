package hosted

import (
	"context"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// ControlPlane is one running control plane of a Host.
type ControlPlane struct{}

// Name is the name it was run under.
func (c *ControlPlane) Name() string { return "" }

// Ready is closed once the control plane can be used: the apiserver is ready,
// RBAC lets the admin in, the default namespace has its service account and CA
// bundle, and the controllers run.
func (c *ControlPlane) Ready() <-chan struct{} { return nil }

// Done is closed once nothing of the control plane runs any more.
func (c *ControlPlane) Done() <-chan struct{} { return nil }

// Err says why the control plane ended by itself; nil while it runs and after
// Stop.
func (c *ControlPlane) Err() error { return nil }

// Endpoint is the URL that clients connect to, the same for all control planes
// of the host.
func (c *ControlPlane) Endpoint() string { return "" }

// ServerName is the TLS server name that leads to this control plane.
func (c *ControlPlane) ServerName() string { return "" }

// CA is the control plane's certificate authority in PEM.
func (c *ControlPlane) CA() []byte { return nil }

// KubeletClientCertificate is what the apiserver shows to kubelets, in PEM.
func (c *ControlPlane) KubeletClientCertificate() []byte { return nil }

// AdminKubeconfig is a self-contained kubeconfig of a cluster admin.
func (c *ControlPlane) AdminKubeconfig() []byte { return nil }

// RESTConfig is the admin's client configuration, a copy of its own for each
// call and without client-side rate limits.
func (c *ControlPlane) RESTConfig() *rest.Config { return nil }

// Version is the version of Kubernetes that the control plane serves.
func (c *ControlPlane) Version() version.Info { return version.Info{} }

// Stop ends the control plane and waits until it is gone or ctx ends. Its data
// stays, and it can be run again.
func (c *ControlPlane) Stop(ctx context.Context) error { return nil }
