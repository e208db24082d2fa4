package external

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner/provisionertest"
)

// TestContract: External does what vc-manager relies on.
func TestContract(t *testing.T) {
	there, secrets, serial := apiserver(t, answers(200, `{"gitVersion":"v1.36.3"}`)), fake.NewClientBuilder().Build(), 0
	newVirtualCluster := func(ctx context.Context, token string) (*tenancyv1alpha1.VirtualCluster, error) {
		serial++
		name := fmt.Sprintf("t%d", serial)
		data, err := kubeconfig.Access{Cluster: name, User: "admin", Server: there.Host, CA: there.CAData}.Write()
		if err != nil {
			return nil, err
		}
		data = []byte(strings.Replace(string(data), "user: {}", "user: {token: "+token+"}", 1))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: name}, Data: map[string][]byte{SecretKey: data}}
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: name, UID: types.UID(name)}}
		vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: name}
		vc.Status.ClusterNamespace = "tenants-123456-" + name
		return vc, secrets.Create(ctx, secret)
	}
	provisionertest.Run(t, provisionertest.Case{
		New: func(context.Context) (provisioner.Provisioner, error) { return New(secrets), nil },
		VirtualCluster: func(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
			return newVirtualCluster(ctx, "good")
		},
		Invalid: func(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) { return newVirtualCluster(ctx, "") },
	})
}
