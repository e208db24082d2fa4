package escapes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Requests for projects", Ordered, ContinueOnFailure, func() {
	const (
		template, secret = "self-service", "staff-only" // of which users may request from the first
		owned            = "owned"                      // the project of jane
		all              = "/tenants/projects/apis/tenancy.x-k8s.io/v1alpha1/projects"
	)
	var (
		mallory *local.Tenant
		door    kit.Door
	)
	of := func(user string, groups ...string) client.Client { return kit.ProjectsOf(super, door, user, groups...) }
	// virtualCluster returns the one of a project.
	virtualCluster := func(ctx context.Context, project string) *tenancyv1alpha1.VirtualCluster {
		GinkgoHelper()
		list := &tenancyv1alpha1.VirtualClusterList{}
		Expect(super.Client.List(ctx, list, client.MatchingFields{"spec.alias": project})).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		return &list.Items[0]
	}
	// claims returns the names of all projects that are requested.
	claims := func(ctx context.Context) []string {
		GinkgoHelper()
		list := &tenancyv1alpha1.ProjectClaimList{}
		Expect(super.Client.List(ctx, list)).To(Succeed())
		found := make([]string, 0, len(list.Items))
		for i := range list.Items {
			found = append(found, list.Items[i].Name)
		}
		return found
	}

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.AllowClientCA(ctx, super)
		door = kit.StartGateway(ctx, super, mallory, func(o *gateway.Options) { o.Projects = true })
		kit.ProjectTemplate(ctx, super, template)
		kit.ProjectTemplate(ctx, super, secret, func(s *tenancyv1alpha1.ProjectTemplateSpec) {
			s.Requesters = []tenancyv1alpha1.Member{{Kind: tenancyv1alpha1.MemberGroup, Name: "staff"}}
		})
		Eventually(func() error { return of("jane").Create(ctx, kit.ProjectRequest(owned, template)) }).Should(Succeed())
	})

	attack("delete a project as a member who has not requested it", "idea: membership shows and routes, and something takes it for ownership", func(ctx SpecContext) {
		kit.Edit(ctx, super.Client, virtualCluster(ctx, owned), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Members = append(vc.Spec.Members, tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: "eve"})
		})
		eve := of("eve")
		Eventually(kit.Get).WithContext(ctx).WithArguments(eve, kit.Project(owned)).Should(Succeed())
		uid := virtualCluster(ctx, owned).UID
		for _, options := range [][]client.DeleteOption{
			nil, {client.Preconditions{UID: &uid}}, {client.PropagationPolicy(metav1.DeletePropagationOrphan)}, {client.GracePeriodSeconds(0)}, {client.DryRunAll},
		} {
			Expect(eve.Delete(ctx, kit.Project(owned), options...)).To(MatchError(apierrors.IsForbidden, "only the requester"))
		}
		Expect(eve.DeleteAllOf(ctx, kit.Project(""))).To(MatchError(apierrors.IsMethodNotSupported, "of all"))
		Expect(virtualCluster(ctx, owned).DeletionTimestamp).To(BeNil())
		impostor := types.UID("00000000-0000-0000-0000-000000000000")
		Expect(of("jane").Delete(ctx, kit.Project(owned), client.Preconditions{UID: &impostor})).To(MatchError(apierrors.IsConflict, "another project"))
	})

	attack("the projects and the slots of a user whose name looks alike", "idea: names are folded, trimmed, normalized or joined before they are hashed or compared",
		func(ctx SpecContext) {
			for i, alike := range []string{"Jane", "jane-0", "jané", "jane\u0301", "jan\u0435", "jane\u200b", template + "jane", "jane:0"} {
				user := of(alike)
				Expect(user.Get(ctx, types.NamespacedName{Name: owned}, kit.Project(owned))).To(MatchError(apierrors.IsNotFound, "no member"), alike)
				Expect(user.Delete(ctx, kit.Project(owned))).To(MatchError(apierrors.IsNotFound, "no member"), alike)
				Expect(user.Create(ctx, kit.ProjectRequest(fmt.Sprintf("alike-%d", i), template), client.DryRunAll)).To(Succeed(), "%q has a slot of its own", alike)
			}
			for _, changed := range []string{"jane ", " jane", "jane\n", "jane\x00"} {
				err := of(changed).Create(ctx, kit.ProjectRequest("changed", template))
				Expect(err).To(MatchError(apierrors.IsUnauthorized, "no such name"), "%q", changed)
			}
			Expect(of("jane").Create(ctx, kit.ProjectRequest("second", template))).To(MatchError(apierrors.IsForbidden, "her slot is taken"))
		})

	attack("fields of the VirtualCluster through a request for a project", "idea: the object is stored with what the gateway does not know", func(ctx SpecContext) {
		request := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "tenancy.x-k8s.io/v1alpha1", "kind": "ProjectRequest",
			"metadata": map[string]any{
				"name": "loaded", "uid": "forged", "finalizers": []any{"example.com/keep"},
				"labels": map[string]any{"tier": "gold", names.ProjectTemplate: secret},
				"annotations": map[string]any{
					names.Requester: "jane", names.ProjectClaim: "forged", names.RequesterRole: "cluster-admin", names.ConfirmRemoval: "1",
				},
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "kube-system", "uid": "forged"}},
			},
			"spec": map[string]any{
				"template": template, "alias": "system", "provisioner": "External", "namespace": "kube-system", "projectsPerUser": 100,
				"policy":  map[string]any{"podSecurity": map[string]any{"level": "privileged"}},
				"members": []any{map[string]any{"kind": "Group", "name": "system:authenticated"}},
			},
			"status": map[string]any{"clusterKey": mallory.Key()},
		}}
		user := of("mallory")
		Expect(user.Create(ctx, request)).To(Succeed())
		vc := virtualCluster(ctx, "loaded")
		Expect(vc.Namespace).To(Equal(template))
		Expect(vc.Spec).To(Equal(tenancyv1alpha1.VirtualClusterSpec{
			Alias: "loaded", Members: []tenancyv1alpha1.Member{{Kind: tenancyv1alpha1.MemberUser, Name: "mallory"}},
		}))
		Expect(vc.Annotations).To(And(HaveKeyWithValue(names.Requester, "mallory"), HaveLen(3)))
		Expect(vc.Labels).To(Equal(map[string]string{names.ProjectTemplate: template}))
		Expect(vc.OwnerReferences).To(BeEmpty())
		Expect(vc.Finalizers).NotTo(ContainElement("example.com/keep"))
		namespaced := kit.ProjectRequest("elsewhere", template)
		namespaced.Namespace = "kube-system"
		Expect(user.Create(ctx, namespaced)).NotTo(Succeed())
		Expect(claims(ctx)).NotTo(ContainElement("elsewhere"))
	})

	attack("a template of others, or find out that it exists", "idea: an error says which templates there are", func(ctx SpecContext) {
		user := of("mallory", "not-staff", "Staff", "staff-only")
		message := func(template string) string {
			err := user.Create(ctx, kit.ProjectRequest("mine", template))
			Expect(err).To(MatchError(apierrors.IsForbidden, template))
			return strings.ReplaceAll(err.Error(), template, "TEMPLATE")
		}
		Expect(message(secret)).To(Equal(message("no-template")))
		for _, wrong := range []string{"../" + secret, secret + "/", template + "\x00", "*", "self-service,staff-only"} {
			Expect(user.Create(ctx, kit.ProjectRequest("mine", wrong))).To(MatchError(apierrors.IsForbidden, "no template"), "%q", wrong)
		}
		Expect(claims(ctx)).NotTo(ContainElement("mine"))
	})

	attack("a project of a user, by the same name from a tenant's own CA or as a ServiceAccount of a tenant", "idea: names are compared, and not who vouches for them",
		func(ctx SpecContext) {
			forged, token := kit.UserOf(super, mallory, "jane", time.Hour, "system:authenticated"), tokenOf(ctx, mallory)
			for path, code := range map[string]int{all: http.StatusForbidden, all + "/" + owned: http.StatusForbidden} {
				Expect(door.Ask(ctx, &forged, path).Code).To(Equal(code), path)
				Expect(door.Ask(ctx, nil, path, "Authorization", "Bearer "+token).Code).To(Equal(code), path)
			}
			eve := kit.SuperUser(super, "outsider")
			for _, headers := range [][]string{{"Impersonate-User", "jane"}, {"X-Remote-User", "jane"}, {"X-Remote-User", "jane", "X-Remote-Group", "system:masters"}} {
				Expect(door.Ask(ctx, &eve, all+"/"+owned, headers...).Code).To(Equal(http.StatusNotFound), "%v", headers)
			}
		})

	attack("more projects by a flood of requests, or the time of others", "idea: checks and writes of many requests overlap, or rejected ones pile up", func(ctx SpecContext) {
		flood, done := context.WithTimeout(ctx, kit.Soon)
		defer done()
		ended := make(chan metav1.StatusReason, 200)
		for i := range cap(ended) {
			user := of("flooder")
			go func() {
				ended <- apierrors.ReasonForError(user.Create(flood, kit.ProjectRequest(fmt.Sprintf("flood-%d", i), template)))
			}()
		}
		// The gateway waits ten seconds for vc-manager, so that the first may be in vain. The flood retries, too.
		bystander := of("bystander")
		Eventually(func() error { return bystander.Create(ctx, kit.ProjectRequest("bystander", template)) }).
			WithPolling(time.Second).Should(Succeed())
		count := map[metav1.StatusReason]int{}
		for range cap(ended) {
			count[<-ended]++
		}
		GinkgoWriter.Println(count)
		list := &tenancyv1alpha1.VirtualClusterList{}
		Eventually(func() int { // one may be granted after its client has given up
			Expect(super.Client.List(ctx, list, client.InNamespace(template))).To(Succeed())
			return len(claims(ctx)) - len(list.Items)
		}).Should(BeZero(), "rejected claims are deleted")
		own := 0
		for i := range list.Items {
			if list.Items[i].Annotations[names.Requester] == "flooder" {
				own++
			}
		}
		Expect(own).To(BeNumerically("<=", 1))
	}, SpecTimeout(4*kit.Soon))

	attack("VirtualClusters of any kind, with the credentials of a gateway that was taken over", "idea: what faces all clients is the first to fall", func(ctx SpecContext) {
		config, err := super.GatewayAccount(ctx)
		Expect(err).NotTo(HaveOccurred())
		taken, err := local.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		vc := kit.VirtualCluster()
		Expect(taken.Create(ctx, vc)).To(MatchError(apierrors.IsForbidden, "no right"))
		existing := virtualCluster(ctx, owned)
		Expect(taken.Delete(ctx, existing)).To(MatchError(apierrors.IsForbidden, "no right"))
		existing.Spec.Weight = 1000
		Expect(taken.Update(ctx, existing)).To(MatchError(apierrors.IsForbidden, "no right"))
		claim := &tenancyv1alpha1.ProjectClaim{ObjectMeta: metav1.ObjectMeta{Name: owned}}
		Expect(kit.Get(ctx, taken, claim)).To(Succeed())
		claim.Spec.Requester = "mallory"
		Expect(taken.Update(ctx, claim)).To(MatchError(apierrors.IsForbidden, "no right"))
		Expect(taken.Status().Update(ctx, claim)).To(MatchError(apierrors.IsForbidden, "no right"))
		own := &tenancyv1alpha1.ProjectTemplate{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: tenancyv1alpha1.ProjectTemplateSpec{Namespace: "default"}}
		Expect(taken.Create(ctx, own)).To(MatchError(apierrors.IsForbidden, "no right"))
		withoutConverted(ctx)
		Eventually(func() error { return taken.List(ctx, &corev1.NamespaceList{}) }).Should(MatchError(apierrors.IsForbidden, "no right"))
	})

	attack("write to projects by verbs that are not offered", "idea: handlers of an apiserver bring more verbs than the API has", func(ctx SpecContext) {
		user := of("jane")
		project := kit.Project(owned)
		Expect(kit.Get(ctx, user, project)).To(Succeed())
		project.Status.ClusterKey = mallory.Key()
		for name, err := range map[string]error{
			"update":        user.Update(ctx, project),
			"update status": user.Status().Update(ctx, project),
			"patch":         user.Patch(ctx, project, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
			"apply":         user.Patch(ctx, project, client.RawPatch(types.ApplyPatchType, []byte(`{}`)), client.FieldOwner("jane")),
			"create":        user.Create(ctx, kit.Project("made")),
			"get request":   user.Get(ctx, types.NamespacedName{Name: owned}, &projectsv1alpha1.ProjectRequest{}),
		} {
			Expect(apierrors.ReasonForError(err)).To(Or(Equal(metav1.StatusReasonMethodNotAllowed), Equal(metav1.StatusReasonNotFound)), name)
		}
	})
})
