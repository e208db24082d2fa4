// Package requester gives the user who has requested a project permissions in
// it.
package requester

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// bindingName is the name of the ClusterRoleBinding in the tenant.
const bindingName = names.Domain + ":project-requester"

// Addon binds the requester of a project, under the name that the gateway sends,
// to the ClusterRole of its template.
func Addon() addons.Addon {
	return addons.Addon{Name: "permissions of the requester", OptOut: names.RequesterBinding, Objects: objects}
}

func objects(vc *tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error) {
	user, role := vc.Annotations[names.Requester], vc.Annotations[names.RequesterRole]
	if user == "" || role == "" {
		return nil, nil
	}
	binding := rbacv1ac.ClusterRoleBinding(bindingName).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(role)).
		WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(names.MemberPrefix + user))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(binding)
	if err != nil {
		return nil, err
	}
	return []*unstructured.Unstructured{{Object: object}}, nil
}
