package accounts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const key = "team-0a1b2c-red"

// index knows the namespace shop of the tenant.
type index struct{}

func (index) TenantName(of, super string) (string, bool) {
	return "shop", of == key && super == names.SuperNamespace(key, "shop")
}

func TestTenant(t *testing.T) {
	a := Accounts{Namer: naming.Namer{Key: key, Namespaces: index{}}}
	got := a.tenant(&user.DefaultInfo{
		Name: "system:serviceaccount:team-0a1b2c-red-shop:web", UID: "1", Groups: []string{"system:masters"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"node-0"}, "example.com/secret": {"a"}},
	})
	want := &user.DefaultInfo{
		Name: "system:serviceaccount:shop:web", UID: "1", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"node-0"}},
	}
	if diff := cmp.Diff(user.Info(want), got); diff != "" {
		t.Errorf("the user (-want +got):\n%s", diff)
	}
	for _, name := range []string{
		"system:serviceaccount:team-0a1b2c-red:converted", "system:serviceaccount:team-0a1b2c-blue-shop:web", "system:serviceaccount:kube-system:web",
		"system:serviceaccount:team-0a1b2c-red-shop", "admin", "system:node:node-0", "",
	} {
		if got := a.tenant(&user.DefaultInfo{Name: name}); got != nil {
			t.Errorf("%q is %v", name, got)
		}
	}
}
