package local

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/rbac"
)

const (
	// tokenLifetime is longer than any test.
	tokenLifetime = 24 * time.Hour
	rightsTimeout = 2 * time.Minute
)

// syncerKubeconfig is the kubeconfig of the syncer's service account in the
// data directory.
const syncerKubeconfig = "syncer.kubeconfig"

// SyncerConfig installs config/rbac for vc-syncer and returns the configuration
// of its service account, so that tests run the syncer with the shipped roles
// only. StartSyncerProcess uses it too.
func (s *SuperCluster) SyncerConfig(ctx context.Context) (*rest.Config, error) {
	config, err := s.programConfig(ctx, rbac.Syncer)
	if err != nil {
		return nil, err
	}
	if err := WriteKubeconfig(filepath.Join(s.Dir, syncerKubeconfig), config); err != nil {
		return nil, err
	}
	return config, waitForRight(ctx, config, authorizationv1.ResourceAttributes{
		Verb: "patch", Group: "tenancy.x-k8s.io", Resource: "virtualclusters", Subresource: "status",
	})
}

// ManagerConfig does the same for vc-manager.
func (s *SuperCluster) ManagerConfig(ctx context.Context) (*rest.Config, error) {
	config, err := s.programConfig(ctx, rbac.Manager)
	if err != nil {
		return nil, err
	}
	return config, waitForRight(ctx, config, authorizationv1.ResourceAttributes{
		Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Name: "vc-manager",
	})
}

// HostConfig does the same for vc-host.
func (s *SuperCluster) HostConfig(ctx context.Context) (*rest.Config, error) {
	config, err := s.programConfig(ctx, rbac.Host)
	if err != nil {
		return nil, err
	}
	return config, waitForRight(ctx, config, authorizationv1.ResourceAttributes{
		Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: rbac.HostReplicasNamespace,
	})
}

// AgentConfig does the same for vn-agent.
func (s *SuperCluster) AgentConfig(ctx context.Context) (*rest.Config, error) {
	config, err := s.programConfig(ctx, rbac.Agent)
	if err != nil {
		return nil, err
	}
	return config, waitForRight(ctx, config, authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec"})
}

// programConfig installs the manifests of a program and returns the
// configuration of its service account.
func (s *SuperCluster) programConfig(ctx context.Context, program string) (*rest.Config, error) {
	objects, err := rbac.For(program)
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		apply := client.ApplyConfigurationFromUnstructured(obj)
		if err := s.Client.Apply(ctx, apply, client.FieldOwner("test"), client.ForceOwnership); err != nil {
			return nil, fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return s.AccountConfig(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: program}})
}

// WriteKubeconfig writes the configuration of a service account.
func WriteKubeconfig(file string, config *rest.Config) error {
	const name = "super"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, file)
}

// AccountConfig returns the configuration of a service account of the super
// cluster.
func (s *SuperCluster) AccountConfig(ctx context.Context, account *corev1.ServiceAccount) (*rest.Config, error) {
	lifetime := int64(tokenLifetime.Seconds())
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	if err := s.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("request a token for %s: %w", account.Name, err)
	}
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = token.Status.Token
	config.QPS = -1
	return config, nil
}

// waitForRight waits until the apiserver grants a permission to a service
// account. It takes a moment: a controller fills aggregated roles.
func waitForRight(ctx context.Context, config *rest.Config, right authorizationv1.ResourceAttributes) error {
	c, err := NewClient(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, rightsTimeout, true, func(ctx context.Context) (bool, error) {
		return Allowed(ctx, c, right)
	})
	if err != nil {
		return fmt.Errorf("wait for the permission to %s %s/%s: %w", right.Verb, right.Resource, right.Subresource, err)
	}
	return nil
}

// Allowed reports whether the user of a client has a permission.
func Allowed(ctx context.Context, c client.Client, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
	}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}
