package virtualcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// gatewayCARetry is when to read the CA of the gateway again, which makes it
// when it first starts.
const gatewayCARetry = 5 * time.Second

// Gateway is the gateway of an installation. Without a URL, there is none.
type Gateway struct {
	// URL is where clients reach it, and PodURL where those in pods of converted
	// tenants do; empty for the same.
	URL, PodURL string
	// CAFile has the authorities of its serving certificate; empty for the
	// system's.
	CAFile string
}

// Validate returns an error for a URL that clients cannot use.
func (g Gateway) Validate() error {
	return errors.Join(validateURL("gateway-url", g.URL), validateURL("gateway-pod-url", g.PodURL))
}

func validateURL(flag, value string) error {
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.Path != "" || parsed.RawQuery != "" {
		return fmt.Errorf("--%s is %q: it must be a URL such as https://gw.example.com, without a path", flag, value)
	}
	return nil
}

// ForPods returns the URL at which clients in pods reach it.
func (g Gateway) ForPods() string { return cmp.Or(g.PodURL, g.URL) }

// Endpoint returns the URL of a tenant at the gateway.
func (g Gateway) Endpoint(clusterKey string) string { return g.URL + "/tenants/" + clusterKey }

// CA returns the authorities of the serving certificate; empty for the system's.
// It reports false while the gateway has not made them.
func (g Gateway) CA() (_ []byte, known bool, err error) {
	if g.CAFile == "" {
		return nil, true, nil
	}
	ca, err := os.ReadFile(g.CAFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(ca) == 0 {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the CA of the gateway: %w", err)
	}
	return ca, true, nil
}

// kubeconfig returns a kubeconfig of a tenant with the gateway in the place of
// the apiserver. It reports false while the gateway has no CA yet.
func (g Gateway) kubeconfig(kubeconfig []byte, clusterKey string) (_ []byte, ready bool, err error) {
	ca, known, err := g.CA()
	if err != nil || !known {
		return nil, false, err
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, false, errors.New("read the admin kubeconfig of the control plane: it cannot be parsed")
	}
	for name := range config.Clusters {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: g.Endpoint(clusterKey), CertificateAuthorityData: ca}
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, false, fmt.Errorf("write the kubeconfig of the gateway: %w", err)
	}
	return data, true, nil
}

// forwards reports whether the gateway forwards the credentials in a kubeconfig.
func forwards(access gatewayaccess.Access, kubeconfig []byte) bool {
	if len(access.Certificate) > 0 {
		return true
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return false
	}
	for _, user := range config.AuthInfos {
		if len(user.ClientCertificateData) > 0 {
			return false
		}
	}
	return true
}

// gatewayKubeconfig returns the admin's kubeconfig through the gateway; nil
// without a gateway, or if it does not forward the admin's credentials. While
// the gateway has no CA, the control plane is reconciled again soon.
func (r *Reconciler) gatewayKubeconfig(clusterKey string, controlPlane *provisioner.ControlPlane) ([]byte, error) {
	if r.Gateway.URL == "" || !forwards(controlPlane.Gateway, controlPlane.Kubeconfig) {
		return nil, nil
	}
	kubeconfig, ready, err := r.Gateway.kubeconfig(controlPlane.Kubeconfig, clusterKey)
	if err == nil && !ready {
		controlPlane.RecheckAfter = gatewayCARetry
	}
	return kubeconfig, err
}

// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=gateway-access,verbs=get;create;patch;delete

// ensureGatewayAccess writes the Secret with what the gateway needs of the
// control plane, and deletes it if there is no gateway. The Secret is read at
// each reconcile: the gateway watches it, and the manager need not.
func (r *Reconciler) ensureGatewayAccess(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, controlPlane provisioner.ControlPlane,
) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = vc.Status.ClusterNamespace, names.GatewaySecret
	key := client.ObjectKeyFromObject(secret)
	err := r.Live.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Secret %s: %w", key, err)
	}
	exists := err == nil
	if r.Gateway.URL == "" {
		if !exists {
			return nil
		}
		return client.IgnoreNotFound(r.Client.Delete(ctx, secret))
	}
	access := controlPlane.Gateway
	access.Server = cmp.Or(access.Server, controlPlane.Endpoint)
	if exists && isPublishedFor(secret, vc) && gatewayaccess.Read(secret.Data).Equal(access) {
		return nil
	}
	want := corev1ac.Secret(key.Name, key.Namespace).
		WithLabels(names.OwnerLabels(vc)).
		WithAnnotations(names.OwnerAnnotations(vc)).
		WithData(access.Data())
	if err := r.Client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write Secret %s: %w", key, secrets.WithoutData(err))
	}
	return nil
}
