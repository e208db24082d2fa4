// Package fence has the RBAC of the super cluster that confines the requests of
// a converted tenant to its namespaces, whatever the gateway does.
package fence

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Binding returns the RoleBinding of a tenant's service account in a namespace
// of the super cluster.
func Binding(clusterKey, superNamespace string) *rbacv1.RoleBinding {
	return binding(clusterKey, superNamespace, names.ConvertedRole)
}

// RootBinding returns the RoleBinding of a tenant's service account in the
// tenant's root namespace, where it may use shelved objects alone.
func RootBinding(clusterKey string) *rbacv1.RoleBinding {
	return binding(clusterKey, clusterKey, names.ConvertedRootRole)
}

func binding(clusterKey, superNamespace, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: superNamespace, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: clusterKey, Name: names.ConvertedAccount}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}
