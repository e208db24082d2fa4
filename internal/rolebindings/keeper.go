// Package rolebindings gives service accounts rights in the namespaces of
// tenants.
package rolebindings

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Keeper keeps RoleBindings of ClusterRoles, each of which is called like its
// role. The program needs the verbs create, get and patch for these names, and
// the verb bind for the roles.
type Keeper struct {
	Client client.Client
	// Live reads from the apiserver.
	Live client.Reader
	// Owner is the name of the program.
	Owner string
	// Finalizers hold the bindings; none by default.
	Finalizers []string
}

// Ensure lets a service account have a ClusterRole in a namespace, on behalf of
// a VirtualCluster.
func (k Keeper) Ensure(ctx context.Context, role, account types.NamespacedName, vc metav1.Object) error {
	existing := &rbacv1.RoleBinding{}
	err := k.Live.Get(ctx, role, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get RoleBinding %s: %w", role, err)
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	if err == nil && existing.RoleRef.Name == role.Name && slices.Equal(existing.Subjects, []rbacv1.Subject{subject}) &&
		sets.New(existing.Finalizers...).HasAll(k.Finalizers...) {
		return nil
	}
	want := rbacv1ac.RoleBinding(role.Name, role.Namespace).
		WithLabels(names.OwnerLabels(vc)).
		WithAnnotations(names.OwnerAnnotations(vc)).
		WithFinalizers(k.Finalizers...).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(role.Name)).
		WithSubjects(rbacv1ac.Subject().WithKind(subject.Kind).WithNamespace(subject.Namespace).WithName(subject.Name))
	if err := k.Client.Apply(ctx, want, client.FieldOwner(k.Owner), client.ForceOwnership); err != nil {
		return fmt.Errorf("write RoleBinding %s: %w", role, err)
	}
	return nil
}
