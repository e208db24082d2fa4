package chain_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// TestAuthorizerOfTenant: the authorizer of a tenant needs no context of the
// tenant, and fails with that of another one, even for an administrator.
func TestAuthorizerOfTenant(t *testing.T) {
	c, _ := newChain(t)
	red, _ := add(t, c, "red")
	for name, test := range map[string]struct {
		ctx  context.Context
		want authorizer.Decision
	}{
		"no tenant":    {t.Context(), authorizer.DecisionAllow},
		"own tenant":   {keyspace.NewContext(t.Context(), "red"), authorizer.DecisionAllow},
		"other tenant": {keyspace.NewContext(t.Context(), "blue"), authorizer.DecisionDeny},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			decision, _, err := red.Authorizer().Authorize(test.ctx, authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, Verb: "get", Resource: "secrets",
			})
			g.Expect(decision).To(Equal(test.want))
			g.Expect(err != nil).To(Equal(test.want == authorizer.DecisionDeny), "%v", err)
		})
	}
}

// TestAuthorizerOfPolicies: the same policy in two tenants asks the RBAC of
// each. Upstream asks it without the context of the request.
func TestAuthorizerOfPolicies(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	red.allow(t, "secrets", joe, rule("get", "", "secrets"))
	create := func(in *cluster) error {
		_, err := in.client(in.certificate(t, "joe")).CoreV1().ConfigMaps(namespace).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x"}}, metav1.CreateOptions{})
		return err
	}
	for _, each := range []*cluster{red, blue} {
		each.allow(t, "writers", joe, rule("create", "", "configmaps"))
		g.Eventually(func() error { return create(each) }, later).Should(Succeed())
		forbid(t, each.admin, `authorizer.group("").resource("secrets").namespace("team").check("get").allowed()`, nil, nil)
	}
	g.Expect(create(red)).To(Succeed())
	g.Expect(create(blue)).To(MatchError(ContainSubstring("by policy")))
	blue.allow(t, "secrets", joe, rule("get", "", "secrets"))
	g.Eventually(func() error { return create(blue) }, later).Should(Succeed())
	g.Expect(red.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), "secrets", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error { return create(red) }, later).Should(MatchError(ContainSubstring("by policy")))
	g.Expect(create(blue)).To(Succeed())
}
