package rbac

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// BenchmarkAuthorize authorizes one user among many, of one tenant among many.
func BenchmarkAuthorize(b *testing.B) {
	for _, others := range []int{0, 10000} {
		b.Run(fmt.Sprintf("%d other bindings", others), func(b *testing.B) {
			t := &testing.T{}
			store := sample(t)
			for i := range others {
				for _, tenant := range []string{red, blue} {
					binding := &rbacv1.RoleBinding{
						ObjectMeta: meta(t, tenant, "shop", fmt.Sprintf("other-%d", i)), RoleRef: ref("ClusterRole", "view"),
						Subjects: subjects("User", "", fmt.Sprintf("other-%d", i)),
					}
					if err := store.roleBindings.GetIndexer().Add(binding); err != nil {
						b.Fatal(err)
					}
				}
			}
			who := &user.DefaultInfo{Name: "system:serviceaccount:shop:robot", Groups: []string{user.AllAuthenticated, "system:serviceaccounts"}}
			asks := authorizer.AttributesRecord{User: who, Verb: "get", Namespace: "shop", Resource: "secrets", ResourceRequest: true}
			for b.Loop() {
				if decision, _, _ := (Tenant{red, store}).Authorize(b.Context(), asks); decision != authorizer.DecisionAllow {
					b.Fatal("the user may not")
				}
			}
		})
	}
}
