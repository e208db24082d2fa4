package local

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
