package chain_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

var (
	joe       = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "joe"}
	jane      = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jane"}
	anonymous = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:anonymous"}
)

func rule(verb, group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
}

func ruleFor(paths ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: paths}
}

func as(name string) credentials {
	return func(config *rest.Config) { config.Impersonate.UserName = name }
}

// proxied returns the credentials of a user that the front proxy authenticated.
// Unlike those of a certificate or a token, they have no ID: the user is the
// same one in two tenants.
func (c *cluster) proxied(t testing.TB, name string) credentials {
	t.Helper()
	proxy, named := certificateOf(t, c.proxy, chain.FrontProxyUser), headers(http.Header{"X-Remote-User": {name}})
	return func(config *rest.Config) {
		proxy(config)
		named(config)
	}
}

// TestImpersonation: joe may act as jane in red only. The filters of a tenant
// remember for ten seconds that he may, so the request to blue follows within that time.
func TestImpersonation(t *testing.T) {
	for mode, rules := range map[string][]rbacv1.PolicyRule{
		"any request": {rule("impersonate", "", "users")},
		"constrained": {
			rule("impersonate:user-info", authenticationv1.GroupName, "users"),
			rule("impersonate-on:user-info:list", "", "configmaps"),
		},
	} {
		t.Run(mode, func(t *testing.T) {
			g := NewWithT(t)
			red, blue, _ := newClusters(t)
			red.allow(t, "impersonators", joe, rules...)
			list := func(in *cluster, with ...credentials) error {
				_, err := in.client(append(with, in.proxied(t, "joe"))...).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
				return err
			}
			for _, each := range []*cluster{red, blue} {
				each.allow(t, "readers", jane, rule("list", "", "configmaps"))
				g.Eventually(func() error { // RBAC has arrived
					_, err := each.client(each.certificate(t, "jane")).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
					return err
				}, later).Should(Succeed())
			}
			g.Eventually(func() error { return list(red, as("jane")) }, later).Should(Succeed())
			for range 5 {
				g.Expect(list(red, as("jane"))).To(Succeed())
				g.Expect(list(blue, as("jane"))).To(MatchError(ContainSubstring("cannot impersonate")))
			}
			g.Expect(apierrors.IsForbidden(list(red))).To(BeTrue())
			g.Expect(apierrors.IsForbidden(list(red, as("admin")))).To(BeTrue())
		})
	}
}
