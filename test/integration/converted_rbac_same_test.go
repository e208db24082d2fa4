package integration

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// dice makes random roles, bindings and questions from few names, so that many
// of them match.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// some returns up to three of the values.
func some(d dice, from ...string) []string {
	var picked []string
	for range 1 + d.IntN(3) {
		picked = append(picked, pick(d, from...))
	}
	return picked
}

var (
	sameNamespaces = []string{"same-a", "same-b"}
	sameUsers      = []string{"same:anna", "same:ben", "system:serviceaccount:same-a:robot", "system:serviceaccount:same-b:robot"}
	sameGroups     = []string{"same:red", "same:blue"}
)

func (d dice) role() string { return fmt.Sprintf("same:role-%d", d.IntN(8)) }

func (d dice) rules(namespaced bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range 1 + d.IntN(3) {
		verbs := some(d, "get", "list", "create", "update", "bind", "escalate", "*")
		if !namespaced && d.IntN(5) == 0 {
			rules = append(rules, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: some(d, "/a", "/a/*", "*", "/b*")})
			continue
		}
		rule := rbacv1.PolicyRule{
			Verbs: verbs, APIGroups: some(d, "", "apps", rbacv1.GroupName, "*"),
			Resources: some(d, "pods", "pods/log", "*/log", "roles", "clusterroles", "*"),
		}
		if d.IntN(3) == 0 {
			rule.ResourceNames = some(d, "x", "y", d.role())
		}
		rules = append(rules, rule)
	}
	return rules
}

func (d dice) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{pick(d,
		userSubject(pick(d, sameUsers...)), groupSubject(pick(d, sameGroups...)),
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: pick(d, sameNamespaces...), Name: "robot"},
	)}
}

// objects returns roles, and bindings of these, and of roles that do not exist.
func (d dice) objects() []client.Object {
	var all []client.Object
	for i := range 6 {
		name := fmt.Sprintf("same:role-%d", i)
		all = append(all, clusterRole(name, d.rules(false)...))
		for _, ns := range sameNamespaces {
			all = append(all, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: d.rules(true)})
		}
	}
	for i := range 6 {
		name := fmt.Sprintf("same:binding-%d", i)
		if i < 2 {
			all = append(all, bindingOf(name, d.role(), d.subjects()...))
		}
		for _, ns := range sameNamespaces {
			all = append(all, roleBindingIn(ns, name, pick(d, "Role", "ClusterRole"), d.role(), d.subjects()...))
		}
	}
	return all
}

func (d dice) question() authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: pick(d, sameUsers...), Groups: some(d, append(sameGroups, "same:green")...)}
	verb := pick(d, "get", "list", "create", "bind", "escalate", "delete")
	if d.IntN(6) == 0 {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: verb, Path: pick(d, "/a", "/a/b", "/b", "/bc", "/")}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: verb, Group: pick(d, "", "apps", rbacv1.GroupName), Resource: pick(d, "pods", "roles", "clusterroles", "secrets"),
		Subresource: pick(d, "", "", "log"), Namespace: pick(d, append(sameNamespaces, "")...), Name: pick(d, "", "x", "y", d.role()),
	}
	return spec
}

// grantedRule is a rule of a role that a binding grants to a subject.
type grantedRule struct {
	namespace string // empty for all
	subject   rbacv1.Subject
	rule      rbacv1.PolicyRule
}

// grantsOf returns what bindings grant.
func grantsOf(objects []client.Object) []grantedRule {
	var grants []grantedRule
	for _, object := range objects {
		var ref rbacv1.RoleRef
		var subjects []rbacv1.Subject
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			ref, subjects = binding.RoleRef, binding.Subjects
		case *rbacv1.RoleBinding:
			ref, subjects = binding.RoleRef, binding.Subjects
		}
		for _, rule := range rulesOf(objects, ref, object.GetNamespace()) {
			for _, subject := range subjects {
				grants = append(grants, grantedRule{object.GetNamespace(), subject, rule})
			}
		}
	}
	return grants
}

// rulesOf returns the rules of the role that a binding in a namespace refers to.
func rulesOf(objects []client.Object, ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	for _, object := range objects {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			if ref.Kind == "ClusterRole" && role.Name == ref.Name {
				return role.Rules
			}
		case *rbacv1.Role:
			if ref.Kind == "Role" && role.Name == ref.Name && role.Namespace == namespace {
				return role.Rules
			}
		}
	}
	return nil
}

// questionOf asks, as the subject of a granted rule, for something in the rule.
func (d dice) questionOf(g grantedRule) authorizationv1.SubjectAccessReviewSpec {
	spec := d.question()
	switch g.subject.Kind {
	case rbacv1.UserKind:
		spec.User = g.subject.Name
	case rbacv1.GroupKind:
		spec.Groups = append(spec.Groups, g.subject.Name)
	case rbacv1.ServiceAccountKind:
		spec.User = "system:serviceaccount:" + g.subject.Namespace + ":" + g.subject.Name
	}
	// oneOf picks one of the values, and one of the others for an asterisk.
	oneOf := func(values []string, others ...string) string {
		if value := pick(d, values...); value != "*" {
			return value
		}
		return pick(d, others...)
	}
	verb := oneOf(g.rule.Verbs, "get", "bind", "delete")
	if len(g.rule.NonResourceURLs) > 0 {
		path := strings.TrimSuffix(oneOf(g.rule.NonResourceURLs, "/", "/c"), "*")
		spec.ResourceAttributes, spec.NonResourceAttributes = nil, &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}
		return spec
	}
	resource, subresource, _ := strings.Cut(oneOf(g.rule.Resources, "secrets", "roles/x"), "/")
	if resource == "*" {
		resource = "pods"
	}
	spec.NonResourceAttributes, spec.ResourceAttributes = nil, &authorizationv1.ResourceAttributes{
		Verb: verb, Group: oneOf(g.rule.APIGroups, "", "apps"), Resource: resource, Subresource: subresource,
		Namespace: cmp.Or(g.namespace, pick(d, sameNamespaces...)), Name: pick(d, append(g.rule.ResourceNames, "z")...),
	}
	return spec
}

// as returns a client of a user.
func as(config *rest.Config, user string, groups []string) client.Client {
	GinkgoHelper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := local.NewClient(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("The RBAC of a converted tenant and that of an apiserver", Ordered, func() {
	var (
		tenant *kit.Converted
		d      dice
		grants []grantedRule
	)

	BeforeAll(func(ctx SpecContext) {
		tenant = kit.StartConverter(ctx, super).Tenant(ctx, "team-3a1b2c-same")
		d = dice{rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))}
		for _, ns := range sameNamespaces {
			kit.Create(ctx, super.Client, namespaceOf(ns))
			kit.Create(ctx, tenant.Client, namespaceOf(ns))
			DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, namespaceOf(ns))).To(Succeed()) })
		}
		manages := mayIn(rbacv1.GroupName, "create", "roles", "clusterroles", "rolebindings", "clusterrolebindings")
		drawn := d.objects()
		grants = grantsOf(drawn)
		objects := append(drawn, clusterRole("same:manages", manages), bindingOf("same:manages", "same:manages", groupSubject("same:managers")))
		for _, object := range objects {
			native := object.DeepCopyObject().(client.Object)
			kit.Create(ctx, super.Client, native)
			kit.Create(ctx, tenant.Client, object)
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, native))).To(Succeed()) })
		}
	})

	It("permit the same users the same", func(ctx SpecContext) {
		allowed := func(c client.Client, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: spec}
			err := c.Create(ctx, review)
			return review.Status.Allowed, err
		}
		permitted := 0
		questions := atLength(20000, 400)
		for range questions {
			question := pick[func() authorizationv1.SubjectAccessReviewSpec](d,
				d.question, func() authorizationv1.SubjectAccessReviewSpec { return d.questionOf(pick(d, grants...)) })()
			var native bool
			Eventually(func() (bool, error) {
				var err error
				if native, err = allowed(super.Client, question); err != nil {
					return false, err
				}
				got, err := allowed(tenant.Client, question)
				return got == native, err
			}).Should(BeTrue(), "%+v", question)
			if native {
				permitted++
			}
		}
		Expect(permitted).To(And(BeNumerically(">", questions/20), BeNumerically("<", questions)), "the questions say something")
	})

	It("permit the same users the same roles and bindings", func(ctx SpecContext) {
		write := func(config *rest.Config, user string, groups []string, object client.Object) (metav1.StatusReason, error) {
			err := as(config, user, groups).Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
			if reason := apierrors.ReasonForError(err); reason == metav1.StatusReasonForbidden || reason == metav1.StatusReasonNotFound {
				return reason, nil
			}
			return "", err
		}
		reasons := map[metav1.StatusReason]int{}
		for range atLength(2000, 100) {
			user, groups := pick(d, sameUsers...), append(some(d, sameGroups...), "same:managers")
			ns := pick(d, sameNamespaces...)
			object := pick[func() client.Object](d,
				func() client.Object { return clusterRole("same:new", d.rules(false)...) },
				func() client.Object {
					return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "same:new"}, Rules: d.rules(true)}
				},
				func() client.Object { return bindingOf("same:new", d.role(), d.subjects()...) },
				func() client.Object {
					return roleBindingIn(ns, "same:new", pick(d, "Role", "ClusterRole"), d.role(), d.subjects()...)
				},
			)()
			native, err := write(super.Config, user, groups, object)
			Expect(err).NotTo(HaveOccurred())
			got, err := write(tenant.Config, user, groups, object)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(native), "%s in %v writes %+v", user, groups, object)
			reasons[got]++
		}
		Expect(reasons).To(And(HaveKey(metav1.StatusReasonForbidden), HaveKey(metav1.StatusReason(""))), "the writes say something")
	})
})
