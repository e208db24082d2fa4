package provider

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestReadBeforeTheCache: a tenant whose root namespace is not cached yet is read
// all the same. No event would follow, and the tenant was not synced for good.
func TestReadBeforeTheCache(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "red", UID: "uid"}}
	vc.Status.ClusterNamespace = "team-123456-red"
	root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: vc.Status.ClusterNamespace, Annotations: map[string]string{names.VCUID: "uid"}}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: root.Name, Name: names.AdminKubeconfigSecret},
		Data:       map[string][]byte{names.AdminKubeconfigKey: []byte("kubeconfig")},
	}
	for name, cached := range map[string][]client.Object{"cached": {root}, "not cached": nil} {
		p := &Provider{
			super:  fake.NewClientBuilder().WithObjects(cached...).Build(),
			reader: fake.NewClientBuilder().WithObjects(root, secret).Build(),
		}
		found, config, err := p.read(t.Context(), vc)
		if err != nil || found == nil || len(config) == 0 {
			t.Errorf("%s: %v, %q, %v", name, found, config, err)
		}
	}
}
