package integration

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("kubectl vc uninstall", Ordered, Label("chart"), func() {
	var (
		super helmed
		// others are objects of others: with names, labels or a namespace like ours.
		others []client.Object
		tenant *tenancyv1alpha1.VirtualCluster
	)
	uninstall := func(ctx context.Context, args ...string) printed {
		GinkgoHelper()
		return kubectlVCWith(ctx, filepath.Join(super.Dir, "super.kubeconfig"), append([]string{"uninstall"}, args...)...)
	}

	BeforeAll(func(ctx SpecContext) {
		length := format.MaxLength
		format.MaxLength = 0
		DeferCleanup(func() { format.MaxLength = length })
		super = newHelmed(ctx)
		super.Must(ctx, "install", "virtualcluster", chartDir, "--create-namespace", "--set", "vcHost.enabled=false")
		part := map[string]string{"app.kubernetes.io/part-of": "virtualcluster"}
		another := map[string]string{"meta.helm.sh/release-name": "another", "meta.helm.sh/release-namespace": metav1.NamespaceDefault}
		others = []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "mine"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-store-backup"}},
			&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "vc-host", Labels: part},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
			},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-widgets"}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "vc-manager-of-others", Labels: part, Annotations: another}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vc-system-of-others", Labels: part, Annotations: another}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "no-tenant", Labels: map[string]string{
				names.VCName: "red", names.VCNamespace: "team",
			}}},
		}
		kit.Create(ctx, super.Client, others...)
		tenant = virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
			vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "elsewhere"}
		})
		Eventually(super.Client.Create).WithContext(ctx).WithArguments(tenant).Should(Succeed())
	}, NodeTimeout(6*kit.Soon))

	DescribeTable("asks before it deletes anything", func(ctx SpecContext, name string, args ...string) {
		p := uninstall(ctx, args...)
		Expect(p.Code).To(Equal(exit.Usage))
		golden(name, p.Err)
	},
		Entry("whether tenants are deleted, too", "uninstall-no-purge", "--yes"),
		Entry("for a confirmation", "uninstall-unconfirmed", "--purge"),
	)

	It("deletes nothing while no vc-manager could delete what the tenants have", func(ctx SpecContext) {
		p := uninstall(ctx, "--purge", "--yes")
		Expect(p.Code).To(Equal(exit.Failed))
		golden("uninstall-no-manager", p.Err)
		kit.ShouldExist(ctx, super.Client, tenant.DeepCopy())
		Expect(super.deployed(ctx)()).To(ConsistOf("vc-manager", "vc-syncer"))
	}, NodeTimeout(3*kit.Soon))

	It("prints what it would delete, and deletes all of it and nothing else", func(ctx SpecContext) {
		super.startComponents(ctx)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: rbac.Manager}}
		Eventually(kit.Read(ctx, super.Client, lease)).WithTimeout(2 * kit.Soon).ShouldNot(BeNil())
		Eventually(kit.Read(ctx, super.Client, tenant)).WithTimeout(2 * kit.Soon).Should(HaveField("Finalizers", Not(BeEmpty())))
		kit.ShouldExist(ctx, super.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-manager-webhook"}})
		orphan := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "team-000000-gone", Labels: map[string]string{names.VCName: "gone", names.VCNamespace: "team"},
			Annotations: map[string]string{names.VCUID: "00000000-0000-0000-0000-000000000000"},
		}}
		kit.Create(ctx, super.Client, orphan)

		p := uninstall(ctx, "--purge", "--dry-run")
		Expect(p).To(succeed())
		Expect(p.Out).To(And(ContainSubstring("deployment.apps/vc-manager deleted (dry run)"), ContainSubstring("secret/vc-manager-webhook deleted"),
			ContainSubstring("namespace/team-000000-gone deleted"), Not(ContainSubstring("of-others"))))
		Expect(p.Err).To(ContainSubstring("keeps namespace vc-system: it has objects that are not of the installation: ConfigMap mine, Secret vc-store-backup"))
		kit.ShouldExist(ctx, super.Client, tenant.DeepCopy())

		p = uninstall(ctx, "--purge", "--yes", "--timeout", "5m")
		Expect(p).To(succeed())
		Expect(p.Err).To(HaveSuffix("VirtualCluster is uninstalled\n"))
		Expect(super.leftovers(ctx)).To(BeEmpty())
		for _, other := range others {
			kit.ShouldExist(ctx, super.Client, other)
		}
	}, NodeTimeout(kit.Longest))

	It("continues, and then deletes the namespace that nothing of others is in", func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, others[0])).To(Succeed())
		Expect(super.Client.Delete(ctx, others[1])).To(Succeed())
		p := uninstall(ctx, "--purge", "--yes")
		Expect(p).To(succeed())
		golden("uninstall-again", p.Out+p.Err)
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(rbac.Namespace))
	}, NodeTimeout(4*kit.Soon))
})

var _ = Describe("kubectl vc uninstall --abandon-tenants", Label("chart", "long"), func() {
	It("deletes the installation and its tenants when vc-manager and vc-host do not run any more", func(ctx SpecContext) {
		super := newHelmed(ctx)
		super.Must(ctx, "install", "virtualcluster", chartDir, "--create-namespace")
		tenant := virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Finalizers = []string{names.Domain + "/virtualcluster"} })
		Eventually(super.Client.Create).WithContext(ctx).WithArguments(tenant).Should(Succeed())
		root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "root", Labels: names.OwnerLabels(tenant), Annotations: names.OwnerAnnotations(tenant),
		}}
		held := metav1.ObjectMeta{Namespace: root.Name, Finalizers: []string{tenancyv1alpha1.HostedControlPlaneFinalizer}}
		plane := &tenancyv1alpha1.HostedControlPlane{ObjectMeta: held, Spec: tenancyv1alpha1.HostedControlPlaneSpec{
			Store:          "default",
			VirtualCluster: tenancyv1alpha1.VirtualClusterReference{Namespace: tenant.Namespace, Name: tenant.Name, UID: tenant.UID},
		}}
		keys := &corev1.Secret{ObjectMeta: held}
		plane.Name, keys.Name = tenancyv1alpha1.HostedControlPlaneName, tenancyv1alpha1.HostedControlPlaneKeys
		kit.Create(ctx, super.Client, root, keys)
		Eventually(super.Client.Create).WithContext(ctx).WithArguments(plane).Should(Succeed()) // when its kind is served, too
		kubeconfig := filepath.Join(super.Dir, "super.kubeconfig")
		Expect(kubectlVCWith(ctx, kubeconfig, "uninstall", "--purge", "--yes").Code).To(Equal(exit.Failed))

		Expect(kubectlVCWith(ctx, kubeconfig, "uninstall", "--purge", "--yes", "--abandon-tenants", "--timeout=5m")).To(succeed())
		Expect(super.leftovers(ctx)).To(BeEmpty())
		kit.ShouldVanish(ctx, super.Client, root)
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(rbac.Namespace))
	}, NodeTimeout(kit.Longest))
})

// leftovers returns the names of objects of an installation that are left.
func (h helmed) leftovers(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &apiextensionsv1.CustomResourceDefinitionList{}, &corev1.NamespaceList{},
	} {
		ofRelease := client.MatchingLabels{"app.kubernetes.io/part-of": "virtualcluster", "app.kubernetes.io/managed-by": "Helm"}
		Expect(h.Client.List(ctx, list, ofRelease)).To(Succeed())
		found = append(found, namesOf(list)...)
	}
	inside := &corev1.SecretList{}
	Expect(h.Client.List(ctx, inside, client.InNamespace(rbac.Namespace))).To(Succeed())
	for i := range inside.Items {
		if inside.Items[i].Name != "vc-store-backup" {
			found = append(found, inside.Items[i].Name)
		}
	}
	return found
}

// namesOf returns the names of the objects of a list.
func namesOf(list client.ObjectList) []string {
	GinkgoHelper()
	var found []string
	Expect(meta.EachListItem(list, func(object runtime.Object) error {
		found = append(found, object.(client.Object).GetName())
		return nil
	})).To(Succeed())
	return found
}
