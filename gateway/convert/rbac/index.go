package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// The indexes: by the tenant and the namespace, and by these and a subject.
const (
	scopeIndex   = "scope"
	subjectIndex = "subject"
)

// scope is where a binding holds: in a namespace of the super cluster of a tenant
// (the label that the platform's policy sets says whose it is), or in a whole
// tenant (in its root namespace, where nothing has the label), or in all (the
// shared ones have neither).
type scope struct{ tenant, namespace string }

func (s scope) key() string { return s.tenant + "/" + s.namespace }

func scopeOf(object metav1.Object) scope {
	return scope{object.GetLabels()[names.Converted], object.GetNamespace()}
}

func byScope(object any) ([]string, error) {
	return []string{scopeOf(object.(metav1.Object)).key()}, nil
}

// bySubject has a key for each subject of a binding, and none for a role.
func bySubject(object any) ([]string, error) {
	var subjects []rbacv1.Subject
	switch binding := object.(type) {
	case *rbacv1.RoleBinding:
		subjects = binding.Subjects
	case *rbacv1.ClusterRoleBinding:
		subjects = binding.Subjects
	}
	keys := make([]string, len(subjects))
	for i, each := range subjects {
		keys[i] = scopeOf(object.(metav1.Object)).key() + "/" + subjectKey(each)
	}
	return keys, nil
}

// subjectKey returns the key of a subject. A service account without a namespace
// is one of the binding's namespace.
func subjectKey(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "" {
		return rbacv1.UserKind + "/" + serviceaccount.MakeUsername(s.Namespace, s.Name)
	}
	return s.Kind + "/" + s.Name
}

// subjectsOf returns the keys of the subjects that a user is in a namespace of
// the tenant; empty for the whole tenant.
func subjectsOf(who user.Info, namespace string) []string {
	keys := []string{rbacv1.UserKind + "/" + who.GetName()}
	for _, group := range who.GetGroups() {
		keys = append(keys, rbacv1.GroupKind+"/"+group)
	}
	if of, account, err := serviceaccount.SplitUsername(who.GetName()); err == nil && of == namespace {
		keys = append(keys, rbacv1.ServiceAccountKind+"/"+account)
	}
	return keys
}
