package hosted_test

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestHostileDeletions: an admin deletes what every cluster has. Namespaces of
// the system are protected, ConfigMaps are created again at once, and roles
// at the next start, as with upstream. Controllers and the platform work on, and
// so do other tenants.
func TestHostileDeletions(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]hosted.Spec{"shared": {Name: "deletes", Shared: true}, "dedicated": {Name: "deletes-own"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			bystander := clientOf(t, runReady(t, shared, hosted.Spec{Name: spec.Name + "-not", Shared: true}).RESTConfig())
			plane, err := shared.Run(spec)
			g.Expect(err).NotTo(HaveOccurred())
			awaitReady(t, plane)
			client := clientOf(t, plane.RESTConfig())
			before := rolesOf(t, client)
			deleteEverything(t, client)

			shouldDeploy(t, client, 0)
			shouldDeploy(t, clientOf(t, platformOf(t, plane)), 1)
			g.Expect(rolesOf(t, bystander)).To(ConsistOf(before))

			stop(t, plane)
			plane = runReady(t, shared, spec)
			client = clientOf(t, plane.RESTConfig())
			g.Expect(rolesOf(t, client)).To(ConsistOf(before))
			g.Eventually(func() error { // its deletion may end after the start
				return errorOf(client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{}))
			}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
		})
	}
}

// deleteEverything deletes what a cluster needs, as its admin.
func deleteEverything(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		err := client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{})
		g.Expect(err).To(Satisfy(apierrors.IsForbidden), name)
	}
	g.Expect(client.CoreV1().Namespaces().Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{})).To(Succeed())
	for name, namespace := range map[string]string{"kube-root-ca.crt": "default", "extension-apiserver-authentication": "kube-system"} {
		configMaps := client.CoreV1().ConfigMaps(namespace)
		old, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(configMaps.Delete(t.Context(), name, metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(func(g Gomega) {
			found, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.UID).NotTo(Equal(old.UID))
			g.Expect(found.Data).To(Equal(old.Data))
		}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
	}
	none, all := metav1.DeleteOptions{}, metav1.ListOptions{}
	rbac := client.RbacV1()
	for _, remove := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		rbac.Roles("kube-system").DeleteCollection, rbac.RoleBindings("kube-system").DeleteCollection,
		rbac.Roles("kube-public").DeleteCollection, rbac.RoleBindings("kube-public").DeleteCollection,
		rbac.ClusterRoleBindings().DeleteCollection,
	} {
		g.Expect(remove(t.Context(), none, all)).To(Succeed())
	}
	// The controller that aggregates roles applies them, as upstream's does: one
	// that it has read before the deletion is made again.
	g.Eventually(func(g Gomega) {
		g.Expect(rbac.ClusterRoles().DeleteCollection(t.Context(), none, all)).To(Succeed())
		g.Expect(rolesOf(t, client)).To(BeEmpty())
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
}

// rolesOf returns the names of all roles and bindings.
func rolesOf(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	g := NewWithT(t)
	var names []string
	clusterRoles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range clusterRoles.Items {
		names = append(names, "ClusterRole "+clusterRoles.Items[i].Name)
	}
	clusterBindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range clusterBindings.Items {
		names = append(names, "ClusterRoleBinding "+clusterBindings.Items[i].Name)
	}
	roles, err := client.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range roles.Items {
		names = append(names, "Role "+roles.Items[i].Namespace+"/"+roles.Items[i].Name)
	}
	bindings, err := client.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range bindings.Items {
		names = append(names, "RoleBinding "+bindings.Items[i].Namespace+"/"+bindings.Items[i].Name)
	}
	return names
}

// TestEditedRoles: what a tenant removes from roles of every cluster is added at
// the next start, as with upstream: not what it adds, and not to a role that it
// protects.
func TestEditedRoles(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	spec := hosted.Spec{Name: "edits-roles", Shared: true}
	plane, err := shared.Run(spec)
	g.Expect(err).NotTo(HaveOccurred())
	awaitReady(t, plane)
	rbac := clientOf(t, plane.RESTConfig()).RbacV1()
	ctx, get := t.Context(), metav1.GetOptions{}
	const edited, extended, replaced, protected = "system:basic-user", "system:discovery", "system:public-info-viewer", "system:node"
	extra := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/extra"}}
	before := map[string][]rbacv1.PolicyRule{}
	for name, edit := range map[string]func(*rbacv1.ClusterRole){
		edited:   func(role *rbacv1.ClusterRole) { role.Rules = nil },
		extended: func(role *rbacv1.ClusterRole) { role.Rules = append(role.Rules, extra) },
		protected: func(role *rbacv1.ClusterRole) {
			role.Rules, role.Annotations[rbacv1.AutoUpdateAnnotationKey] = nil, "false"
		},
		replaced: nil,
	} {
		role, err := rbac.ClusterRoles().Get(ctx, name, get)
		g.Expect(err).NotTo(HaveOccurred())
		before[name] = slices.Clone(role.Rules)
		if edit != nil {
			edit(role)
			g.Expect(errorOf(rbac.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}))).NotTo(HaveOccurred())
			continue
		}
		g.Expect(rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		role = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		g.Expect(errorOf(rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}))).NotTo(HaveOccurred())
	}
	binding, err := rbac.ClusterRoleBindings().Get(ctx, edited, get)
	g.Expect(err).NotTo(HaveOccurred())
	subjects := binding.Subjects
	binding.Subjects = nil
	g.Expect(errorOf(rbac.ClusterRoleBindings().Update(ctx, binding, metav1.UpdateOptions{}))).NotTo(HaveOccurred())

	stop(t, plane)
	rbac = clientOf(t, runReady(t, shared, spec).RESTConfig()).RbacV1()
	rules := func(name string) []rbacv1.PolicyRule {
		role, err := rbac.ClusterRoles().Get(ctx, name, get)
		g.Expect(err).NotTo(HaveOccurred())
		return role.Rules
	}
	for _, name := range []string{edited, replaced} {
		covered, missing := validation.Covers(rules(name), before[name])
		g.Expect(covered).To(BeTrue(), "%s lacks %v", name, missing)
	}
	g.Expect(rules(extended)).To(Equal(append(before[extended], extra)))
	g.Expect(rules(protected)).To(BeEmpty())
	binding, err = rbac.ClusterRoleBindings().Get(ctx, edited, get)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(binding.Subjects).To(Equal(subjects))
}
