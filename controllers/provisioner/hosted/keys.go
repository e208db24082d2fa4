package hosted

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// keysRole is the ClusterRole with the rights on the Secrets of a control plane,
// and the name of its binding in each root namespace.
const keysRole = "vc-host-keys"

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=vc-host-keys,verbs=get;create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=vc-host-keys,verbs=bind

// ensureKeys lets vc-host use the Secrets with the keys and the clients of the
// control plane, in this root namespace.
func (p *Provisioner) ensureKeys(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	key := types.NamespacedName{Namespace: vc.Status.ClusterNamespace, Name: keysRole}
	existing := &rbacv1.RoleBinding{}
	err := p.live.Get(ctx, key, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get RoleBinding %s: %w", key, err)
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: p.host.Namespace, Name: p.host.Name}
	if err == nil && existing.RoleRef.Name == keysRole && slices.Equal(existing.Subjects, []rbacv1.Subject{subject}) {
		return nil
	}
	want := rbacv1ac.RoleBinding(key.Name, key.Namespace).
		WithLabels(names.OwnerLabels(vc)).
		WithAnnotations(names.OwnerAnnotations(vc)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(keysRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(subject.Kind).WithNamespace(subject.Namespace).WithName(subject.Name))
	if err := p.client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write RoleBinding %s: %w", key, err)
	}
	return nil
}
