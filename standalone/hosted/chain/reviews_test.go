package chain_test

import (
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTokenReviews reviews the tokens of two tenants in both.
func TestTokenReviews(t *testing.T) {
	red, blue, all := newClusters(t)
	copyServiceAccount(t, all, red, blue)
	vault := authenticationv1.TokenRequestSpec{ExpirationSeconds: new(hour), Audiences: []string{"vault"}}
	for name, test := range map[string]struct {
		of, in    *cluster
		spec      authenticationv1.TokenRequestSpec
		audiences []string
		want      []string
	}{
		"own":                           {of: red, in: red, spec: forever, want: []string{issuer}},
		"of another tenant":             {of: blue, in: red, spec: forever},
		"for another audience":          {of: red, in: red, spec: forever, audiences: []string{"vault"}},
		"for vault":                     {of: red, in: red, spec: vault, audiences: []string{"vault", "other"}, want: []string{"vault"}},
		"for vault, by the default":     {of: red, in: red, spec: vault},
		"for vault, of another tenant":  {of: blue, in: red, spec: vault, audiences: []string{"vault"}},
		"for vault, from another realm": {of: red, in: blue, spec: vault, audiences: []string{"vault"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for range 2 {
				review, err := test.in.admin.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
					Spec: authenticationv1.TokenReviewSpec{Token: test.of.token(t, test.spec).Status.Token, Audiences: test.audiences},
				}, metav1.CreateOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(review.Status.Authenticated).To(Equal(test.want != nil), "%s", review.Status.Error)
				g.Expect(review.Status.Audiences).To(Equal(test.want))
			}
		})
	}
}

// TestAccessReviews: the same user may do different things in two tenants.
func TestAccessReviews(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	red.allow(t, "readers", joe, rule("get", "", "secrets"))
	blue.allow(t, "readers", joe, rule("get", "", "configmaps"))
	reviewers := rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"*"}}
	for of, want := range map[*cluster]string{red: "secrets", blue: "configmaps"} {
		of.allow(t, "reviewers", joe, reviewers)
		client := of.client(of.certificate(t, "joe")).AuthorizationV1()
		for _, resource := range []string{"secrets", "configmaps"} {
			asked := &authorizationv1.ResourceAttributes{Verb: "get", Resource: resource, Namespace: namespace}
			g.Eventually(func(g Gomega) {
				review, err := client.SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked},
				}, metav1.CreateOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(review.Status.Allowed).To(Equal(resource == want), "%s in %s", resource, of.name)
				other, err := client.SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: "joe", ResourceAttributes: asked},
				}, metav1.CreateOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(other.Status.Allowed).To(Equal(resource == want), "%s in %s", resource, of.name)
			}, later).Should(Succeed())
		}
		rules, err := client.SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rules.Status.ResourceRules).To(ContainElement(HaveField("Resources", ConsistOf(want))))
	}
}

// TestEscalation: a user grants what it has in the same tenant, and no more.
func TestEscalation(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	edits := []rbacv1.PolicyRule{rule("create", rbacv1.GroupName, "roles"), rule("create", rbacv1.GroupName, "rolebindings")}
	red.allow(t, "edits", joe, append(edits, rule("get", "", "secrets"))...)
	blue.allow(t, "edits", joe, edits...)
	create := func(in *cluster, name string) error {
		_, err := in.client(in.certificate(t, "joe")).RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule("get", "", "secrets")},
		}, metav1.CreateOptions{})
		return err
	}
	g.Eventually(func() error { return create(red, "secrets") }, later).Should(Succeed())
	g.Eventually(func() error { return create(blue, "secrets") }, later).Should(MatchError(ContainSubstring("attempting to grant RBAC permissions not currently held")))

	// A role with the same name that allows more exists in the other tenant.
	bind := func(in *cluster, name, role string) error {
		_, err := in.client(in.certificate(t, "joe")).RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		return err
	}
	red.allow(t, "deputies", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jane"}, rule("get", "", "pods"))
	red.allow(t, "binders", joe, rbacv1.PolicyRule{Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"deputies"}})
	blue.allow(t, "deputies", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "jane"}, rule("get", "", "pods"))
	g.Eventually(func() error { return bind(red, "x", "deputies") }, later).Should(Succeed())
	g.Expect(apierrors.IsForbidden(bind(blue, "x", "deputies"))).To(BeTrue())
}
