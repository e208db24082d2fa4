// Package external is the provisioner of control planes that run elsewhere: an
// admin puts a kubeconfig into a Secret beside the VirtualCluster, and that is
// the tenant's control plane. The provisioner neither creates nor deletes it.
package external

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// Keys of the Secret that a VirtualCluster names.
const (
	// SecretKey holds the kubeconfig.
	SecretKey = "kubeconfig"
	// KubeletClientCAKey holds the authorities of the certificates that the
	// apiserver shows kubelets and aggregated APIs, if vn-agent is to answer
	// it.
	KubeletClientCAKey = "kubelet-client-ca.crt"
)

// recheck is the interval at which the Secret and the apiserver are checked.
// Reading one Secret costs less than a watch, which would have to cover the
// whole super cluster: only VirtualClusters know the Secrets that matter.
const recheck = 30 * time.Second

// maxEndpoint is the longest endpoint that the status holds.
const maxEndpoint = 2048

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// Provisioner follows control planes that run elsewhere. It is a manager's
// Runnable: Start probes the apiservers, separately from the reconciles, so
// that apiservers that hang delay no reconcile.
type Provisioner struct {
	secrets client.Reader
	prober  *prober
}

// Registration offers External.
func Registration() provisioner.Registration {
	return provisioner.Registration{
		Name:    tenancyv1alpha1.ProvisionerExternal,
		Summary: "a control plane that runs elsewhere, by the kubeconfig in a Secret",
		New: func(mgr manager.Manager) (provisioner.Provisioner, error) {
			p := New(mgr.GetAPIReader())
			return p, mgr.Add(p)
		},
	}
}

// New makes a Provisioner that reads the Secrets from secrets, which should not
// be a cache: it would hold every Secret.
func New(secrets client.Reader) *Provisioner {
	return &Provisioner{secrets: secrets, prober: newProber(ask)}
}

// Start asks apiservers until the context ends.
func (p *Provisioner) Start(ctx context.Context) error { return p.prober.run(ctx) }

// Events tells of VirtualClusters whose apiserver answers otherwise than
// before.
func (p *Provisioner) Events() <-chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster] {
	return p.prober.events
}

// Ensure returns the result of the last probe of the apiserver, and triggers
// another one if it is old.
func (p *Provisioner) Ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	secret, err := p.read(ctx, vc)
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	question, err := parse(client.ObjectKeyFromObject(secret), secret.Data[SecretKey])
	if err != nil {
		return provisioner.ControlPlane{}, err
	}
	if err := checkKubeletClientCA(secret); err != nil {
		return provisioner.ControlPlane{}, err
	}
	answer := p.prober.look(vc, question)
	if answer == nil {
		return provisioner.ControlPlane{Message: "Connecting to " + question.config.Host}, nil
	}
	if answer.failure != nil {
		return provisioner.ControlPlane{}, answer.failure
	}
	if err := matchVersion(vc.Spec.KubernetesVersion, answer.version); err != nil {
		return provisioner.ControlPlane{}, err
	}
	return provisioner.ControlPlane{
		Ready:        true,
		Endpoint:     answer.of.config.Host,
		Version:      answer.version,
		Kubeconfig:   answer.of.kubeconfig,
		RecheckAfter: recheck,

		KubeletClientCA: secret.Data[KubeletClientCAKey],
		// Without keys of the control plane, the gateway forwards tokens, and no
		// client certificates.
		Gateway: gatewayaccess.Access{
			ServerName: answer.of.config.ServerName, CA: answer.of.config.CAData,
		},
	}, nil
}

// Delete forgets the control plane. It is not ours to remove.
func (p *Provisioner) Delete(_ context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	p.prober.forget(vc.UID)
	return true, nil
}

// Capabilities returns no Service addresses: the control plane was configured
// elsewhere. Its operator lets it reach vn-agent, or opts out of what needs that.
func (*Provisioner) Capabilities() provisioner.Capabilities {
	return provisioner.Capabilities{Network: true}
}

// read gets the Secret that the spec names.
func (p *Provisioner) read(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*corev1.Secret, error) {
	if vc.Spec.External == nil {
		return nil, provisioner.Failf(tenancyv1alpha1.ReasonInvalidSpec,
			"provisioner External needs a kubeconfig: create the VirtualCluster with spec.provisioner External and "+
				"spec.external.kubeconfigSecretName")
	}
	key := types.NamespacedName{Namespace: vc.Namespace, Name: vc.Spec.External.KubeconfigSecretName}
	secret := &corev1.Secret{}
	err := p.secrets.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, provisioner.Failf(tenancyv1alpha1.ReasonKubeconfigMissing,
			"Secret %s does not exist: create it with the kubeconfig under the key %s", key, SecretKey)
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	return secret, nil
}

// checkKubeletClientCA says what is wrong with the authority of the apiserver's
// kubelet client certificate, if there is one.
func checkKubeletClientCA(secret *corev1.Secret) error {
	data := secret.Data[KubeletClientCAKey]
	if len(data) == 0 {
		return nil
	}
	if _, err := cert.ParseCertsPEM(data); err != nil {
		return provisioner.Failf(tenancyv1alpha1.ReasonKubeconfigInvalid,
			"Secret %s has no certificate in PEM under the key %s: put the authority of the apiserver's --kubelet-client-certificate there, "+
				"or remove the key", client.ObjectKeyFromObject(secret), KubeletClientCAKey)
	}
	return nil
}

// parse makes a question of a kubeconfig, or says what is wrong with it.
func parse(secret types.NamespacedName, data []byte) (question, error) {
	if len(data) == 0 {
		return question{}, provisioner.Failf(tenancyv1alpha1.ReasonKubeconfigMissing,
			"Secret %s has nothing under the key %s: put the kubeconfig there", secret, SecretKey)
	}
	config, err := kubeconfig.RESTConfig(data)
	if err != nil {
		return question{}, provisioner.Failf(tenancyv1alpha1.ReasonKubeconfigInvalid,
			"Secret %s: %s", secret, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if len(config.Host) > maxEndpoint {
		return question{}, provisioner.Failf(tenancyv1alpha1.ReasonKubeconfigInvalid,
			"Secret %s: the kubeconfig's server has more than %d characters", secret, maxEndpoint)
	}
	return question{kubeconfig: data, config: config}, nil
}

// matchVersion fails if the spec wants another minor version than the one that
// runs. Patches are the owner's business.
func matchVersion(want, runs string) error {
	if want == "" {
		return nil
	}
	wanted, err := version.ParseGeneric(withPatch(want))
	if err != nil {
		return provisioner.Failf(tenancyv1alpha1.ReasonInvalidSpec, "spec.kubernetesVersion %q is not a version such as v1.36.3 or 1.36", want)
	}
	running, err := version.ParseGeneric(runs)
	if err != nil {
		return provisioner.Failf(tenancyv1alpha1.ReasonUnsupportedVersion, "the control plane runs %q, which is not a version", runs)
	}
	if wanted.Major() == running.Major() && wanted.Minor() == running.Minor() {
		return nil
	}
	return provisioner.Failf(tenancyv1alpha1.ReasonUnsupportedVersion,
		"spec.kubernetesVersion is %s, and the control plane runs %s: change the spec, or upgrade the control plane where it runs", want, runs)
}

// withPatch completes a version that leaves the patch out.
func withPatch(v string) string {
	if strings.Count(v, ".") < 2 {
		return v + ".0"
	}
	return v
}
