package hosted

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// keysRole is the ClusterRole with the rights on the Secrets of a control plane,
// and the name of its binding in each root namespace.
const keysRole = "vc-host-keys"

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=vc-host-keys,verbs=get;create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=vc-host-keys,verbs=bind

// ensureKeys lets vc-host use the Secrets with the keys and the clients of the
// control plane, in this root namespace.
func (p *Provisioner) ensureKeys(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	return p.bindings.Ensure(ctx, types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: keysRole}, p.host, vc)
}
