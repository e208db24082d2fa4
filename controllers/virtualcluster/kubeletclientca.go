package virtualcluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// ensureKubeletClientCA publishes the authority by which vn-agent knows the
// tenant's apiserver. One that is no more is taken back. It holds no secret, so
// vn-agent needs to read none.
func (r *Reconciler) ensureKubeletClientCA(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, ca []byte) error {
	published := &corev1.ConfigMap{}
	published.Namespace, published.Name = vc.Status.ClusterNamespace, names.KubeletClientCAConfigMap
	want := corev1ac.ConfigMap(published.Name, published.Namespace).
		WithLabels(names.OwnerLabels(vc)).
		WithAnnotations(names.OwnerAnnotations(vc)).
		WithData(map[string]string{names.KubeletClientCAKey: string(ca)})
	return r.ensurePublished(ctx, vc, published, want, func() bool {
		return published.Data[names.KubeletClientCAKey] == string(ca)
	})
}
