package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// virtualClusterOf returns the VirtualCluster of a project.
func virtualClusterOf(ctx context.Context, project string) *tenancyv1alpha1.VirtualCluster {
	GinkgoHelper()
	list := &tenancyv1alpha1.VirtualClusterList{}
	Expect(super.Client.List(ctx, list, client.MatchingFields{"spec.alias": project})).To(Succeed())
	Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

// oneOf runs requests at the same time, of which one at most may succeed, and the
// others must fail for a reason. The platform deletes what it has not decided in
// time: if that was the one, another succeeds a moment later.
func oneOf(requests []func() error, reason metav1.StatusReason) {
	GinkgoHelper()
	got := reasons(requests)
	Expect(got[""]+got[reason]).To(Equal(len(requests)), "%v", got)
	if got[""] == 0 {
		Eventually(requests[0]).WithPolling(time.Second).Should(Succeed())
		got[""]++
	}
	Expect(got[""]).To(Equal(1))
}

// inTime repeats a request that the platform has not decided in time: a busy machine
// does not get to all of many in ten seconds.
func inTime(ctx context.Context, request func() error) func() error {
	return func() error {
		for {
			if err := request(); !apierrors.IsTimeout(err) || ctx.Err() != nil {
				return err
			}
		}
	}
}

// reasons runs requests at the same time, and returns how many of them ended
// with each reason; empty for success.
func reasons(requests []func() error) map[metav1.StatusReason]int {
	ended := make(chan error, len(requests))
	var start, group sync.WaitGroup
	start.Add(1)
	for _, request := range requests {
		group.Go(func() {
			start.Wait()
			ended <- request()
		})
	}
	start.Done()
	group.Wait()
	close(ended)
	count := map[metav1.StatusReason]int{}
	for err := range ended {
		if err == nil {
			count[""]++
			continue
		}
		GinkgoWriter.Println(err)
		count[apierrors.ReasonForError(err)]++
	}
	return count
}

var _ = Describe("Requested projects", Ordered, ContinueOnFailure, func() {
	const (
		small, wide = "small", "wide" // templates
		clients     = 20
	)
	var (
		door kit.Door
		dir  string
	)

	of := func(user string) client.Client { return kit.ProjectsOf(super, door, user) }

	// kubeconfigOf writes the kubeconfig of a user of the super cluster for a tenant
	// of the gateway.
	kubeconfigOf := func(user, tenant string) string {
		GinkgoHelper()
		pair := kit.UserPEM(super, "super", user, time.Hour)
		file := clientcmdapi.NewConfig()
		file.Clusters["gw"] = &clientcmdapi.Cluster{Server: "https://" + door.Address + "/tenants/" + tenant, CertificateAuthorityData: door.CA}
		file.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.CertPEM, ClientKeyData: pair.KeyPEM}
		file.Contexts["gw"] = &clientcmdapi.Context{Cluster: "gw", AuthInfo: user}
		file.CurrentContext = "gw"
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*file, kubeconfig)).To(Succeed())
		return kubeconfig
	}

	// kubectl runs an unmodified kubectl as a user.
	kubectl := func(ctx context.Context, user, tenant string, args ...string) (string, error) {
		GinkgoHelper()
		args = append([]string{"--kubeconfig", kubeconfigOf(user, tenant)}, args...)
		out, err := exec.CommandContext(ctx, os.Getenv(kubectlBinary), args...).CombinedOutput()
		return string(out), err
	}

	manifest := func(name, spec string) string {
		GinkgoHelper()
		file := filepath.Join(dir, name+".yaml")
		text := fmt.Sprintf("apiVersion: tenancy.x-k8s.io/v1alpha1\nkind: ProjectRequest\nmetadata: {name: %s}\nspec: %s\n", name, spec)
		Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		return file
	}

	// ended deletes a project, which the gateway knows a moment after its creation.
	ended := func(ctx context.Context, user, project string) {
		GinkgoHelper()
		Eventually(func() error { return of(user).Delete(ctx, kit.Project(project)) }).Should(Succeed())
	}

	// gone deletes a project and waits until it is gone.
	gone := func(ctx context.Context, user, project string) {
		GinkgoHelper()
		ended(ctx, user, project)
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, &tenancyv1alpha1.ProjectClaim{ObjectMeta: metav1.ObjectMeta{Name: project}}).
			WithTimeout(2 * kit.Soon).Should(MatchError(apierrors.IsNotFound, "not found"))
	}

	BeforeAll(func(ctx SpecContext) {
		dir = kit.TempDir()
		kit.AllowClientCA(ctx, super)
		door = kit.StartGateway(ctx, super, tenant(ctx), func(o *gateway.Options) { o.Projects = true })
		kit.ProjectTemplate(ctx, super, small, func(s *tenancyv1alpha1.ProjectTemplateSpec) {
			s.Template.Metadata.Labels = map[string]string{"tier": "small", names.ProjectTemplate: "forged"}
			s.Template.Spec = runtime.RawExtension{Raw: []byte(`{"weight": 7, "members": [{"kind": "Group", "name": "support"}], "alias": "forged"}`)}
		})
		kit.ProjectTemplate(ctx, super, wide, func(s *tenancyv1alpha1.ProjectTemplateSpec) {
			s.ProjectsPerUser, s.RequesterClusterRole = 3, "view"
			s.Requesters = []tenancyv1alpha1.Member{
				{Kind: tenancyv1alpha1.MemberUser, Name: "joe"}, {Kind: tenancyv1alpha1.MemberGroup, Name: "builders"},
			}
		})
		aliasIsFree(ctx, "shop")
		Eventually(func() error {
			return of("joe").Create(ctx, kit.ProjectRequest("dry", wide), client.DryRunAll)
		}).Should(Succeed(), "the gateway knows the templates")
	})

	It("are created by kubectl from a template, and are their users' own", func(ctx SpecContext) {
		file := manifest("shop", "{}")
		out, err := kubectl(ctx, "jane", "projects", "create", "-f", file, "--dry-run=server")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(Equal("projectrequest.tenancy.x-k8s.io/shop created (server dry run)\n"))
		Expect(must(kubectl(ctx, "jane", "projects", "get", "projects"))).To(Equal("No resources found\n"), "a dry run creates nothing")
		out, err = kubectl(ctx, "jane", "projects", "create", "-f", file)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(Equal("projectrequest.tenancy.x-k8s.io/shop created\n"))
		vc := virtualClusterOf(ctx, "shop")
		Expect(vc.Namespace).To(Equal(small))
		Expect(vc.Spec.Weight).To(BeEquivalentTo(7))
		Expect(vc.Labels).To(And(HaveKeyWithValue("tier", "small"), HaveKeyWithValue(names.ProjectTemplate, small)))
		Expect(vc.Annotations).To(HaveKeyWithValue(names.Requester, "jane"))
		Expect(vc.Spec.Members).To(ConsistOf(
			tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberGroup, Name: "support"}, tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}))
		Eventually(func() (string, error) { return kubectl(ctx, "jane", "projects", "get", "project", "shop") }).WithTimeout(2 * kit.Soon).
			Should(ContainSubstring("Running"))
		Eventually(func() (string, error) {
			return kubectl(ctx, "jane", "shop", "auth", "can-i", "*", "*", "--all-namespaces")
		}).WithTimeout(2*kit.Soon).
			Should(ContainSubstring("yes"), "she is admin inside")
	}, SpecTimeout(8*kit.Soon))

	It("say what is wrong with a request", func(ctx SpecContext) {
		for _, tc := range []struct{ user, name, spec, want string }{
			{"jane", "second", "{}", `projectrequests.tenancy.x-k8s.io "second" is forbidden: you have as many projects of template "small" as you may have, which is 1`},
			{"jane", "second", "{template: wide}", `there is no template "wide" from which you may request projects`},
			{"jane", "second", "{template: none}", `there is no template "none" from which you may request projects`},
			{"jack", "shop", "{}", `projects.tenancy.x-k8s.io "shop" already exists`},
			{"joe", "second", "{}", `spec.template must name one of the templates from which you may request projects: small, wide`},
			{"jack", "Second", "{}", `The ProjectRequest "Second" is invalid`},
			{"jack", "system", "{}", `is a name of the gateway`},
			{"jack", "a-0a1b2c-b", "{}", `has the form of a cluster key`},
			{"jack", "second", "{policy: {}}", `strict decoding error: unknown field "spec.policy"`},
		} {
			out, err := kubectl(ctx, tc.user, "projects", "create", "-f", manifest(tc.name, tc.spec))
			Expect(err).To(HaveOccurred(), "%+v", tc)
			Expect(out).To(ContainSubstring(tc.want), "%+v", tc)
		}
		Expect(must(kubectl(ctx, "jane", "projects", "explain", "projectrequest.spec.template"))).To(ContainSubstring("names the ProjectTemplate"))
	})

	It("are deleted by kubectl, which frees the slot and the name", func(ctx SpecContext) {
		Expect(of("jack").Delete(ctx, kit.Project("shop"))).To(MatchError(apierrors.IsNotFound, "of others it does not exist"))
		out, err := kubectl(ctx, "jane", "projects", "delete", "project", "shop", "--dry-run=server")
		Expect(err).NotTo(HaveOccurred(), out)
		out, err = kubectl(ctx, "jane", "projects", "delete", "projects", "shop")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(Equal("project.tenancy.x-k8s.io \"shop\" deleted\n"))
		Eventually(func() error { return of("jane").Create(ctx, kit.ProjectRequest("shop", "")) }).WithTimeout(2 * kit.Soon).Should(Succeed())
		gone(ctx, "jane", "shop")
	}, SpecTimeout(8*kit.Soon))

	It("are requested and deleted by kubectl vc project", func(ctx SpecContext) {
		kubeconfig := kubeconfigOf("kim", "projects")
		project := func(verb ...string) printed {
			GinkgoHelper()
			return kubectlVCWith(ctx, kubeconfig, append([]string{"project"}, verb...)...)
		}
		requested := project("request", "cart", "--from", small)
		Expect(requested).To(succeed())
		golden("project-request", strings.ReplaceAll(requested.Out, names.ProjectSlot(small, "kim", 0), "SLOT"))
		second := project("request", "till")
		Expect(second.Code).To(Equal(exit.Denied))
		golden("project-request-limit", second.Err)
		taken := kubectlVCWith(ctx, kubeconfigOf("lee", "projects"), "project", "request", "cart")
		Expect(taken.Code).To(Equal(exit.Failed))
		golden("project-request-taken", taken.Err)
		golden("project-delete-missing", kubectlVCWith(ctx, kubeconfigOf("lee", "projects"), "project", "delete", "cart").Err)
		changeVC(ctx, &local.Tenant{VC: virtualClusterOf(ctx, "cart")}, withMembers("kim", "lee"))
		Eventually(func() string { return kubectlVCWith(ctx, kubeconfigOf("lee", "projects"), "project", "list").Out }).Should(ContainSubstring("cart"))
		denied := kubectlVCWith(ctx, kubeconfigOf("lee", "projects"), "project", "delete", "cart")
		Expect(denied.Code).To(Equal(exit.Denied))
		golden("project-delete-denied", denied.Err)
		golden("project-delete", project("delete", "cart").Out)
	}, SpecTimeout(3*kit.Soon))

	It("are limited when many clients request the last slot at once", func(ctx SpecContext) {
		for i := range 2 {
			Expect(of("joe").Create(ctx, kit.ProjectRequest(fmt.Sprintf("held-%d", i), wide))).To(Succeed())
		}
		request := func(names func(int) string) []func() error {
			all := make([]func() error, clients)
			for i := range all {
				c := of("joe")
				all[i] = inTime(ctx, func() error { return c.Create(ctx, kit.ProjectRequest(names(i), wide)) })
			}
			return all
		}
		last := request(func(i int) string { return fmt.Sprintf("last-%d", i) })
		oneOf(last, metav1.StatusReasonForbidden)
		list := &tenancyv1alpha1.VirtualClusterList{}
		Expect(super.Client.List(ctx, list, client.InNamespace(wide))).To(Succeed())
		Expect(list.Items).To(HaveLen(3))
		Eventually(func() ([]tenancyv1alpha1.ProjectClaim, error) {
			claims := &tenancyv1alpha1.ProjectClaimList{}
			err := super.Client.List(ctx, claims)
			// That of an earlier spec is there until its project is gone.
			return slices.DeleteFunc(claims.Items, func(c tenancyv1alpha1.ProjectClaim) bool { return c.Spec.Template != wide }), err
		}).Should(HaveLen(3), "rejected claims are deleted")
		gone(ctx, "joe", "held-0")
		Eventually(func() error { return of("joe").Create(ctx, kit.ProjectRequest("again", wide)) }).Should(Succeed(), "a deletion frees the slot")
	}, SpecTimeout(8*kit.Soon))

	It("have one owner when many users request one name at once", func(ctx SpecContext) {
		all := make([]func() error, clients)
		for i := range all {
			c := of(fmt.Sprintf("racer-%d", i))
			all[i] = inTime(ctx, func() error { return c.Create(ctx, kit.ProjectRequest("race", small)) })
		}
		oneOf(all, metav1.StatusReasonAlreadyExists)
		virtualClusterOf(ctx, "race")
	}, SpecTimeout(3*kit.Soon))

	It("keep their names until they are gone", func(ctx SpecContext) {
		Expect(of("ann").Create(ctx, kit.ProjectRequest("name", small))).To(Succeed())
		vc := virtualClusterOf(ctx, "name")
		held := func() error { return of("bob").Create(ctx, kit.ProjectRequest("name", small)) }
		const finalizer = "example.com/held"
		kit.Edit(ctx, super.Client, vc, func(vc *tenancyv1alpha1.VirtualCluster) { controllerutil.AddFinalizer(vc, finalizer) })
		ended(ctx, "ann", "name")
		Eventually(kit.Read(ctx, super.Client, vc)).WithTimeout(2 * kit.Soon).Should(HaveField("Finalizers", Equal([]string{finalizer})))
		Expect(held()).To(MatchError(apierrors.IsAlreadyExists, "the VirtualCluster exists"))
		Expect(of("ann").Create(ctx, kit.ProjectRequest("other", small))).To(MatchError(apierrors.IsForbidden, "its slot is taken, too"))

		// An admin removes all finalizers: a namespace is left.
		left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "left-of-name", Labels: names.OwnerLabels(vc), Annotations: names.OwnerAnnotations(vc),
		}}
		kit.Create(ctx, super.Client, left)
		kit.Edit(ctx, super.Client, vc, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Finalizers = nil })
		kit.ShouldVanish(ctx, super.Client, vc)
		Consistently(held).Should(MatchError(apierrors.IsAlreadyExists, "a namespace of the project exists"))
		Expect(super.Client.Delete(ctx, left)).To(Succeed())
		Eventually(held).WithTimeout(2 * kit.Soon).Should(Succeed())
	}, SpecTimeout(kit.Longest))

	It("end with their VirtualClusters when an admin deletes these", func(ctx SpecContext) {
		Expect(of("eva").Create(ctx, kit.ProjectRequest("admin", small))).To(Succeed())
		vc := virtualClusterOf(ctx, "admin")
		removeTenant(ctx, vc)
		kit.ShouldVanish(ctx, super.Client, &tenancyv1alpha1.ProjectClaim{ObjectMeta: metav1.ObjectMeta{Name: "admin"}})
		Eventually(func() error { return of("eva").Create(ctx, kit.ProjectRequest("admin", small)) }).Should(Succeed())
		Expect(virtualClusterOf(ctx, "admin").UID).NotTo(Equal(vc.UID))
	}, SpecTimeout(8*kit.Soon))

	It("are limited together by a ResourceQuota of the namespace", func(ctx SpecContext) {
		const count = corev1.ResourceName("count/virtualclusters.tenancy.x-k8s.io")
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: small, Name: "projects"}, Spec: corev1.ResourceQuotaSpec{Hard: kit.Amounts(string(count), "0")}}
		kit.Create(ctx, super.Client, quota)
		tries := 0
		Eventually(func() error { // a moment later, the quota applies
			tries++
			return of(fmt.Sprintf("tom-%d", tries)).Create(ctx, kit.ProjectRequest(fmt.Sprintf("over-%d", tries), small))
		}).Should(MatchError(And(
			ContainSubstring(`the platform permits no more projects of template "small" now`), Not(ContainSubstring("quota: projects")))))
		Expect(super.Client.Delete(ctx, quota)).To(Succeed())
	}, SpecTimeout(2*kit.Soon))
})
