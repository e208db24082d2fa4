package requester

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestAddon(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		role, user  string
	}{
		"not requested": {nil, "", ""},
		"no role":       {map[string]string{names.Requester: "jane"}, "", ""},
		"requested":     {map[string]string{names.Requester: "jane", names.RequesterRole: "edit"}, "edit", "member:jane"},
		"of Kubernetes": {map[string]string{names.Requester: "system:admin", names.RequesterRole: "admin"}, "admin", "member:system:admin"},
	} {
		t.Run(name, func(t *testing.T) {
			vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			objects, err := Addon().Objects(vc)
			if err != nil || len(objects) > 1 || (len(objects) == 0) != (tc.role == "") {
				t.Fatalf("got %v, %v", objects, err)
			}
			if len(objects) == 0 {
				return
			}
			binding := &rbacv1.ClusterRoleBinding{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, binding, true); err != nil {
				t.Fatal(err)
			}
			if binding.RoleRef.Name != tc.role || len(binding.Subjects) != 1 || binding.Subjects[0].Name != tc.user {
				t.Errorf("got %+v", binding)
			}
		})
	}
}
