package tables

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// text is the type of all columns.
const text = "string"

// documented has the descriptions of the columns that many kinds have.
var documented = metav1.ObjectMeta{}.SwaggerDoc()

var (
	nameColumn  = metav1.TableColumnDefinition{Name: "Name", Type: text, Format: "name", Description: documented["name"]}
	ageColumn   = metav1.TableColumnDefinition{Name: "Age", Type: text, Description: documented["creationTimestamp"]}
	roleColumns = []metav1.TableColumnDefinition{
		nameColumn, {Name: "Created At", Type: text, Description: documented["creationTimestamp"]},
	}
	bindingColumns = []metav1.TableColumnDefinition{
		nameColumn,
		{Name: "Role", Type: text, Description: rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"]},
		ageColumn,
		{Name: "Users", Type: text, Priority: 1, Description: "Users in the binding"},
		{Name: "Groups", Type: text, Priority: 1, Description: "Groups in the binding"},
		{Name: "ServiceAccounts", Type: text, Priority: 1, Description: "ServiceAccounts in the binding"},
	}
)

func roleCells(object map[string]any) ([]any, error) {
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &role); err != nil {
		return nil, err
	}
	return []any{role.Name, role.CreationTimestamp.UTC().Format(time.RFC3339)}, nil
}

func bindingCells(object map[string]any) ([]any, error) {
	var binding rbacv1.ClusterRoleBinding
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &binding); err != nil {
		return nil, err
	}
	named := map[string][]string{}
	for _, subject := range binding.Subjects {
		name := subject.Name
		if subject.Kind == rbacv1.ServiceAccountKind {
			name = subject.Namespace + "/" + name
		}
		named[subject.Kind] = append(named[subject.Kind], name)
	}
	list := func(kind string) string { return strings.Join(named[kind], ", ") }
	return []any{
		binding.Name, binding.RoleRef.Kind + "/" + binding.RoleRef.Name, age(binding.ObjectMeta),
		list(rbacv1.UserKind), list(rbacv1.GroupKind), list(rbacv1.ServiceAccountKind),
	}, nil
}
