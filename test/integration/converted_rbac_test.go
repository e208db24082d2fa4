package integration

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func mayIn(group, verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: []string{verb}, Resources: resources}
}

func bindingOf(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func roleBindingIn(namespace, name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func groupSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

var _ = Describe("The RBAC of a converted tenant", Ordered, ContinueOnFailure, func() {
	var red, blue *kit.Converted

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		red, blue = converter.Tenant(ctx, "team-1a1b2c-red"), converter.Tenant(ctx, "team-1d8e7f-blue")
		for _, tenant := range []*kit.Converted{red, blue} {
			kit.Create(ctx, tenant.Client, namespaceOf("shop"), configMap("shop", "settings", nil))
		}
	})

	It("has names, types and versions of a cluster", func(ctx SpecContext) {
		role := clusterRole("system:mine:Reader", mayIn("", "get", "pods"))
		kit.Create(ctx, red.Client, role)
		Expect(role.Namespace).To(BeEmpty())
		Expect(kit.Get(ctx, red.Client, role)).To(Succeed())
		Expect(role.Name).To(Equal("system:mine:Reader"))
		Expect(role.ManagedFields).To(ConsistOf(HaveField("APIVersion", "rbac.authorization.k8s.io/v1")))
		kit.ShouldVanish(ctx, blue.Client, clusterRole(role.Name))
		kit.ShouldVanish(ctx, super.Client, clusterRole(role.Name))
		generated := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "made:"}}
		kit.Create(ctx, red.Client, generated)
		Expect(generated.Name).To(MatchRegexp("^made:.{5}$"))
		Expect(generated.Namespace).To(Equal("shop"))
		var found rbacv1.RoleList
		Expect(red.Client.List(ctx, &found, client.MatchingFields{"metadata.name": generated.Name})).To(Succeed())
		Expect(keysOf(found.Items)).To(Equal([]string{"shop/" + generated.Name}))
		err := red.Client.Create(ctx, clusterRole("system:mine:Reader"))
		Expect(err).To(MatchError(`clusterroles.rbac.authorization.k8s.io "system:mine:Reader" already exists`))
		Expect(red.Client.Delete(ctx, role)).To(Succeed())
		Expect(kit.Get(ctx, red.Client, role)).To(MatchError(`clusterroles.rbac.authorization.k8s.io "system:mine:Reader" not found`))
	})

	It("is updated, patched in four ways, applied and deleted", func(ctx SpecContext) {
		role := clusterRole("verbs", mayIn("", "get", "pods"))
		kit.Create(ctx, red.Client, role)
		kit.Edit(ctx, red.Client, role, func(r *rbacv1.ClusterRole) { r.Labels = map[string]string{"a": "1"} })
		stale := role.DeepCopy()
		for _, patch := range []client.Patch{
			client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/a","value":"1"},{"op":"add","path":"/metadata/labels/b","value":"2"},{"op":"copy","from":"/rules/0","path":"/rules/-"}]`)),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":null,"c":"3"}}}`)),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"$patch":"replace","d":"4"},"finalizers":["example.com/a"]}}`)),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`)),
		} {
			Expect(red.Client.Patch(ctx, role, patch)).To(Succeed())
		}
		Expect(role.Labels).To(Equal(map[string]string{"d": "4"}))
		Expect(role.Finalizers).To(BeEmpty())
		Expect(role.Rules).To(HaveLen(2))
		Expect(red.Client.Update(ctx, stale)).To(MatchError(apierrors.IsConflict, "conflict"))
		stale.ResourceVersion = ""
		Expect(red.Client.Update(ctx, stale)).To(Succeed(), "without a version, as in a cluster")
		err := red.Client.Patch(ctx, role, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/a","value":"9"}]`)))
		Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))

		applied := rbacv1ac.ClusterRole("applied").WithRules(rbacv1ac.PolicyRule().WithVerbs("get").WithAPIGroups("").WithResources("pods"))
		for range 2 {
			Expect(red.Client.Apply(ctx, applied, client.FieldOwner("spec"))).To(Succeed())
		}
		Expect(kit.Get(ctx, red.Client, clusterRole("applied"))).To(Succeed())
		dry := clusterRole("dry")
		Expect(red.Client.Create(ctx, dry, client.DryRunAll)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, dry)
		Expect(red.Client.DeleteAllOf(ctx, &rbacv1.ClusterRole{})).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, clusterRole("applied"))
	})

	It("is validated as in a cluster", func(ctx SpecContext) {
		bad := func(object client.Object, want string) {
			GinkgoHelper()
			err := red.Client.Create(ctx, object)
			Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))
			Expect(err).To(MatchError(ContainSubstring(want)))
		}
		bad(clusterRole("bad", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}}), "rules[0].verbs: Required value")
		bad(clusterRole("bad", rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"pods"}}), "resource rules must supply at least one api group")
		bad(clusterRole("bad", rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"pods"}, NonResourceURLs: []string{"/"}}), "rules cannot apply to both")
		bad(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/"}}}},
			"namespaced rules cannot apply to non-resource URLs")
		bad(bindingOf("bad", "view", rbacv1.Subject{Kind: "Robot", Name: "a"}), `subjects[0].kind: Unsupported value: "Robot"`)
		bad(bindingOf("bad", "view", rbacv1.Subject{Kind: "ServiceAccount", Name: "a"}), "subjects[0].namespace: Required value")
		binding := bindingOf("good", "view", rbacv1.Subject{Kind: "User", Name: "a"})
		binding.RoleRef.APIGroup = ""
		kit.Create(ctx, red.Client, binding)
		Expect(binding.RoleRef.APIGroup).To(Equal(rbacv1.GroupName))
		Expect(binding.Subjects[0].APIGroup).To(Equal(rbacv1.GroupName))
		binding.RoleRef.Name = "edit"
		Expect(red.Client.Update(ctx, binding)).To(MatchError(ContainSubstring("cannot change roleRef")))
	})

	It("shares the roles of each cluster until it changes them", func(ctx SpecContext) {
		view := clusterRole("view")
		Expect(kit.Get(ctx, red.Client, view)).To(Succeed())
		Expect(red.Client.Delete(ctx, view)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(red.Client.Patch(ctx, view, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"true"}}}`)))).To(Succeed())
		count := func(t *kit.Converted, options ...client.ListOption) int {
			GinkgoHelper()
			var list rbacv1.ClusterRoleList
			Expect(t.Client.List(ctx, &list, append(options, client.MatchingLabels{"kubernetes.io/bootstrapping": "rbac-defaults"})...)).To(Succeed())
			return len(list.Items)
		}
		inSuper := &rbacv1.ClusterRoleList{}
		Expect(super.Client.List(ctx, inSuper, client.MatchingLabels{"kubernetes.io/bootstrapping": "rbac-defaults"})).To(Succeed())
		for _, t := range []*kit.Converted{red, blue} {
			Eventually(count).WithArguments(t).Should(Equal(len(inSuper.Items)))
			Expect(count(t, client.MatchingFields{"metadata.name": "system:node"})).To(Equal(1))
		}
		var mine rbacv1.ClusterRoleList
		Expect(red.Client.List(ctx, &mine, client.MatchingLabels{"mine": "true"})).To(Succeed())
		Expect(keysOf(mine.Items)).To(Equal([]string{"/view"}))
		Expect(kit.Get(ctx, blue.Client, view)).To(Succeed())
		Expect(view.Labels).NotTo(HaveKey("mine"))
		Expect(red.Client.Delete(ctx, clusterRole("view"))).To(Succeed())
		Expect(kit.Get(ctx, red.Client, view)).To(Succeed(), "it is the shared one again")
	})

	It("aggregates roles of its own, and none of the platform", func(ctx SpecContext) {
		toView := map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}
		resources := func(c client.Client) ([]string, error) {
			view := clusterRole("view")
			err := kit.Get(ctx, c, view)
			var all []string
			for _, rule := range view.Rules {
				all = append(all, rule.Resources...)
			}
			return all, err
		}
		for c, resource := range map[client.Client]string{super.Client: "secrets-of-the-platform", red.Client: "widgets"} {
			role := clusterRole("aggregated", mayIn("example.com", "get", resource))
			role.Labels = toView
			kit.Create(ctx, c, role)
			DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, role)).To(Succeed()) })
			Eventually(resources).WithArguments(c).Should(And(ContainElement(resource), ContainElement("pods")))
		}
		for tenant, has := range map[*kit.Converted]OmegaMatcher{red: ContainElement("widgets"), blue: Not(ContainElement("widgets"))} {
			Expect(resources(tenant.Client)).To(And(has, Not(ContainElement("secrets-of-the-platform"))))
		}
		kit.Create(ctx, red.Client, bindingOf("gus", "view", userSubject("gus")))
		may := func(resource string) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "gus", ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "example.com", Verb: "get", Resource: resource},
			}}
			err := red.Client.Create(ctx, review)
			return review.Status.Allowed, err
		}
		Eventually(may).WithArguments("widgets").Should(BeTrue())
		Expect(may("secrets-of-the-platform")).To(BeFalse())
	})

	It("is watched", func(ctx SpecContext) {
		w, err := red.Client.Watch(ctx, &rbacv1.RoleBindingList{})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		kit.Create(ctx, blue.Client, roleBindingIn("shop", "watched", "ClusterRole", "view"))
		kit.Create(ctx, red.Client, roleBindingIn("shop", "watched", "ClusterRole", "view"))
		Expect(red.Client.Delete(ctx, roleBindingIn("shop", "watched", "ClusterRole", "view"))).To(Succeed())
		for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
			var event watch.Event
			Eventually(w.ResultChan()).Should(Receive(&event))
			Expect(event.Type).To(Equal(want))
			Expect(event.Object.(*rbacv1.RoleBinding).Namespace).To(Equal("shop"))
		}
	})

	It("permits what roles grant, in namespaces and in the whole tenant", func(ctx SpecContext) {
		anna := red.As("anna")
		settings := func() error { return kit.Get(ctx, anna.Client, configMap("shop", "settings", nil)) }
		Expect(settings()).To(MatchError(`configmaps "settings" is forbidden: User "anna" cannot get resource "configmaps" in API group "" in the namespace "shop"`))
		binding := roleBindingIn("shop", "anna", "ClusterRole", "view", userSubject("anna"))
		kit.Create(ctx, red.Client, namespaceOf("other"), binding)
		Eventually(settings).Should(Succeed())
		Expect(anna.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("other"))).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(anna.Client.List(ctx, &corev1.ConfigMapList{})).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(anna.Client.Create(ctx, configMap("shop", "a", nil))).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(red.Client.Delete(ctx, binding)).To(Succeed())
		Eventually(settings).Should(MatchError(apierrors.IsForbidden, "forbidden"))

		kit.Create(ctx, red.Client, bindingOf("team:readers", "view", groupSubject("readers")))
		ben := red.As("ben", "readers")
		Eventually(func() error { return ben.Client.List(ctx, &corev1.ConfigMapList{}) }).Should(Succeed())
		elsewhere := blue.As("ben", "readers")
		Expect(elsewhere.Client.List(ctx, &corev1.ConfigMapList{})).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})

	It("lets no user grant more than it has, except with bind and escalate", func(ctx SpecContext) {
		roles := mayIn(rbacv1.GroupName, "create", "clusterroles", "clusterrolebindings", "roles", "rolebindings")
		roles.Verbs = append(roles.Verbs, "get", "patch", "update")
		kit.Create(ctx, red.Client, clusterRole("manages-roles", roles, mayIn("", "get", "pods")), bindingOf("fay", "manages-roles", userSubject("fay")))
		fay := red.As("fay")
		pods := clusterRole("of-fay", mayIn("", "get", "pods"))
		Eventually(func() error { return fay.Client.Create(ctx, pods) }).Should(Succeed())
		escalates := MatchError(ContainSubstring("attempting to grant RBAC permissions not currently held"))
		secrets := mayIn("", "get", "secrets")
		Expect(fay.Client.Create(ctx, clusterRole("more", secrets))).To(escalates)
		Expect(fay.Client.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "more"}, Rules: []rbacv1.PolicyRule{secrets}})).To(escalates)
		Expect(fay.Client.Create(ctx, bindingOf("more", "cluster-admin", userSubject("fay")))).To(escalates)
		Expect(fay.Client.Create(ctx, roleBindingIn("shop", "more", "ClusterRole", "admin", userSubject("fay")))).To(escalates)
		Expect(fay.Client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{}},
		}})).To(MatchError(ContainSubstring("must have cluster-admin privileges to use an aggregationRule")))
		more := pods.DeepCopy()
		more.Rules = append(more.Rules, secrets)
		Expect(fay.Client.Update(ctx, more)).To(escalates)
		for kind, patch := range map[types.PatchType]string{
			types.JSONPatchType:           `[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}}]`,
			types.MergePatchType:          `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
			types.StrategicMergePatchType: `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`,
		} {
			Expect(fay.Client.Patch(ctx, pods, client.RawPatch(kind, []byte(patch)))).To(escalates, string(kind))
		}
		applied := rbacv1ac.ClusterRole("of-fay").WithRules(rbacv1ac.PolicyRule().WithVerbs("get").WithAPIGroups("").WithResources("secrets"))
		Expect(fay.Client.Apply(ctx, applied, client.FieldOwner("fay"), client.ForceOwnership)).To(escalates)
		Expect(fay.Client.Apply(ctx, rbacv1ac.ClusterRole("of-fay").WithLabels(map[string]string{"a": "b"}), client.FieldOwner("fay"))).To(Succeed())
		Expect(kit.Get(ctx, red.Client, pods)).To(Succeed())
		Expect(pods.Rules).To(Equal([]rbacv1.PolicyRule{mayIn("", "get", "pods")}))

		kit.Create(ctx, red.Client, clusterRole("binds", mayIn(rbacv1.GroupName, "bind", "clusterroles"), mayIn(rbacv1.GroupName, "escalate", "clusterroles")),
			bindingOf("fay-binds", "binds", userSubject("fay")))
		Eventually(func() error { return fay.Client.Create(ctx, clusterRole("more", secrets)) }).Should(Succeed())
		Expect(fay.Client.Create(ctx, bindingOf("more", "more", userSubject("fay")))).To(Succeed())
		Eventually(func() error {
			return fay.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "none"}, &corev1.Secret{})
		}).
			Should(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("answers what a user may do, and who it is", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, bindingOf("cleo", "view", userSubject("cleo")))
		cleo := red.As("cleo", "auditors")
		clients := kubernetes.NewForConfigOrDie(cleo.Config)
		may := func(verb string) (bool, error) {
			review, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods", Namespace: "shop"}},
			}, metav1.CreateOptions{})
			return err == nil && review.Status.Allowed, err
		}
		Eventually(may).WithArguments("get").Should(BeTrue())
		Expect(may("create")).To(BeFalse())
		who, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(who.Status.UserInfo.Username).To(Equal("cleo"))
		Expect(who.Status.UserInfo.Groups).To(ConsistOf("auditors", "system:authenticated"))
		rules, err := clients.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "shop"},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(rules.Status.ResourceRules).To(ContainElement(HaveField("Resources", ContainElement("pods"))))

		admin := kubernetes.NewForConfigOrDie(red.Config).AuthorizationV1()
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: "cleo", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "shop"},
		}
		review, err := admin.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status).To(HaveField("Allowed", BeTrue()))
		Expect(review.Status.Reason).To(ContainSubstring(`ClusterRoleBinding "cleo" of ClusterRole "view"`))
		local, err := admin.LocalSubjectAccessReviews("shop").Create(ctx, &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: spec,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(local.Status.Allowed).To(BeTrue())
		_, err = admin.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
		Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))
		_, err = clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})

	It("lets users act as others with the permission", func(ctx SpecContext) {
		as := func(t *kit.Converted, name string) error {
			config := rest.CopyConfig(t.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: name}
			return kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/shop/configmaps/settings").Do(ctx).Error()
		}
		kit.Create(ctx, red.Client, bindingOf("dora", "view", userSubject("dora")))
		Eventually(as).WithArguments(red, "dora").Should(Succeed())
		Expect(as(red, "nobody")).To(MatchError(ContainSubstring(`User "nobody" cannot get resource "configmaps"`)))
		Expect(as(red.As("eve"), "dora")).To(MatchError(ContainSubstring(`User "eve" cannot impersonate resource "users"`)))
	})

	It("is used by kubectl, Tables included", func(ctx SpecContext) {
		p := programs{dir: kit.TempDir(), kubeconfig: red.Kubeconfig()}
		p.does(ctx, "created", "create", "clusterrole", "table:a", "--verb=get", "--resource=pods")
		p.does(ctx, "created", "create", "clusterrolebinding", "table:b", "--clusterrole=table:a", "--user=anna", "--serviceaccount=shop:robot")
		p.does(ctx, "CREATED AT", "get", "clusterroles")
		p.does(ctx, "system:basic-user", "get", "clusterroles")
		p.does(ctx, "ClusterRole/table:a", "get", "clusterrolebindings", "table:b", "-o", "wide")
		p.does(ctx, "shop/robot", "get", "clusterrolebindings", "table:b", "-o", "wide")
		p.does(ctx, "pods", "describe", "clusterrole", "table:a")
		p.does(ctx, "labeled", "label", "clusterrole", "table:a", "tier=a")
		p.does(ctx, "created", "create", "role", "reader", "-n", "shop", "--verb=get", "--resource=pods")
		p.does(ctx, "shop ", "get", "roles", "-A")
		p.does(ctx, "yes", "auth", "can-i", "create", "pods", "-n", "shop")
		p.does(ctx, "admin", "auth", "whoami")
		p.does(ctx, "selfsubjectreviews", "auth", "can-i", "--list", "--as=anna", "-n", "shop")
		p.write("role.yaml", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "table:c"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`)
		p.does(ctx, "reconciled", "auth", "reconcile", "-f", filepath.Join(p.dir, "role.yaml"))
		p.does(ctx, "deleted", "delete", "clusterrolebinding", "table:b")
	})
})
