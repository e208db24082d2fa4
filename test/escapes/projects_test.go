package escapes

import (
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// asProject returns a change that makes a VirtualCluster a project of a user and
// a group.
func asProject(alias, user, group string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Alias = alias
		vc.Spec.Members = []tenancyv1alpha1.Member{
			{Kind: tenancyv1alpha1.MemberUser, Name: user}, {Kind: tenancyv1alpha1.MemberGroup, Name: group},
		}
	}
}

var _ = Describe("The projects of others", Ordered, ContinueOnFailure, func() {
	const (
		all  = "/tenants/projects/apis/tenancy.x-k8s.io/v1alpha1/projects"
		bank = "/tenants/bank/api/v1/secrets"
	)
	var (
		victim, mallory *local.Tenant
		door            kit.Door
		jane, eve       tls.Certificate // a member of the victim, and of mallory's project
	)
	// unnamed returns a body without the name in the request.
	unnamed := func(reply local.Reply, name string) string { return strings.ReplaceAll(reply.Body, name, "NAME") }

	BeforeAll(func(ctx SpecContext) {
		victim = tenant(ctx, asProject("bank", "jane", "bankers"))
		Eventually(func() time.Duration { return time.Since(victim.VC.CreationTimestamp.Time) }).Should(BeNumerically(">", time.Second))
		mallory = tenant(ctx, asProject("bank", "eve", "evil")) // as in a race: the victim is older
		kit.AllowClientCA(ctx, super)
		door = kit.StartGateway(ctx, super, victim, func(o *gateway.Options) { o.Projects = true })
		kit.Through(ctx, super, mallory)
		jane, eve = kit.SuperUser(super, "jane"), kit.SuperUser(super, "eve")
		Eventually(func() string { return door.Ask(ctx, &jane, all).Body }).WithTimeout(kit.Soon).Should(ContainSubstring(`"name":"bank"`))
		Eventually(func() string { return door.Ask(ctx, &eve, all).Body }).WithTimeout(kit.Soon).Should(ContainSubstring(mallory.Key()))
	})

	attack("list, get and watch projects as a member of another one", "idea: filters that a list has and a get or a watch has not", func(ctx SpecContext) {
		for _, query := range []string{"", "?fieldSelector=metadata.name%3Dbank", "?limit=1", "?resourceVersion=0", "?watch=true&timeoutSeconds=1",
			"?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"} {
			reply := door.Ask(ctx, &eve, all+query)
			Expect(reply.Code).To(Equal(http.StatusOK), query)
			Expect(reply.Body).NotTo(Or(ContainSubstring(`"bank"`), ContainSubstring(victim.Key()), ContainSubstring(string(victim.VC.UID))), query)
		}
		existing, none := door.Ask(ctx, &eve, all+"/bank"), door.Ask(ctx, &eve, all+"/none")
		Expect(existing.Code).To(Equal(http.StatusNotFound))
		Expect(unnamed(existing, "bank")).To(Equal(unnamed(none, "none")))
	})

	attack("find out whether a project exists, by the response to a request for it", "idea: 403 for one that exists, 404 for none", func(ctx SpecContext) {
		admin, token := kit.UserOf(super, mallory, "admin", time.Hour, mastersGroup), tokenOf(ctx, mallory)
		for who, ask := range map[string]func(path string) local.Reply{
			"a member of another": func(path string) local.Reply { return door.Ask(ctx, &eve, path) },
			"an admin of another": func(path string) local.Reply { return door.Ask(ctx, &admin, path) },
			"a token of another":  func(path string) local.Reply { return door.Ask(ctx, nil, path, "Authorization", "Bearer "+token) },
			"a forged token":      func(path string) local.Reply { return door.Ask(ctx, nil, path, "Authorization", "Bearer forged") },
			"unknown":             func(path string) local.Reply { return door.Ask(ctx, nil, path) },
		} {
			existing, none := ask(bank), ask("/tenants/none/api/v1/secrets")
			Expect(existing.Code).To(Equal(http.StatusForbidden), who)
			Expect(existing.Code).To(Equal(none.Code), who)
			Expect(unnamed(existing, "bank")).To(Equal(unnamed(none, "none")), who)
		}
	})

	attack("a project, by a certificate of a tenant's own CA with the name and the groups of its members", "idea: a tenant's admin signs any name",
		func(ctx SpecContext) {
			forged := kit.UserOf(super, mallory, "jane", time.Hour, "bankers", "member:bankers", mastersGroup)
			for _, path := range []string{bank, all, all + "/bank", "/api/v1/secrets?project=bank"} {
				Expect(door.Ask(ctx, &forged, path).Code).To(Equal(http.StatusForbidden), path)
			}
		})

	attack("a project, by headers that name a member", "idea: X-Remote-User and Impersonate-User of a proxy", func(ctx SpecContext) {
		for _, headers := range [][]string{
			{"X-Remote-User", "member:jane"}, {"X-Remote-User", "jane", "X-Remote-Group", "bankers"}, {"x_remote_user", "jane"},
			{"Impersonate-User", "jane", "Impersonate-Group", "bankers"}, {"X-Kubernetes-Project", "bank"},
		} {
			Expect(door.Ask(ctx, &eve, all, headers...).Body).NotTo(ContainSubstring(victim.Key()), "%v", headers)
			Expect(door.Ask(ctx, &eve, bank, headers...).Code).To(Equal(http.StatusForbidden), "%v", headers)
		}
	})

	attack("the alias of another project, by a VirtualCluster with the same", "idea: an alias is taken twice in a race", func(ctx SpecContext) {
		Expect(door.Ask(ctx, &eve, all).Body).To(ContainSubstring(`"name":"`+mallory.Key()+`"`), "the younger has no alias")
		Expect(door.Ask(ctx, &eve, "/tenants/bank/api").Code).To(Equal(http.StatusForbidden))
		Expect(door.Ask(ctx, &jane, bank).Body).To(ContainSubstring("member:jane"), "the oldest keeps its members")
	})

	attack("be admin inside a project as an admin of the platform, or by impersonation", "idea: groups such as system:masters are sent on", func(ctx SpecContext) {
		for _, names := range [][]string{{"jane", mastersGroup}, {"system:admin", "bankers", mastersGroup}, {"system:serviceaccount:kube-system:default", "bankers"}} {
			user := kit.SuperUser(super, names[0], names[1:]...)
			for _, headers := range [][]string{
				nil, {"Impersonate-User", "admin"}, {"Impersonate-User", "admin", "Impersonate-Group", mastersGroup}, {"X-Remote-Group", mastersGroup},
			} {
				reply := door.Ask(ctx, &user, bank, headers...)
				Expect(reply.Code).To(Equal(http.StatusForbidden), "%v %v", names, headers)
				Expect(reply.Body).To(ContainSubstring("member:"+names[0]), "%v %v", names, headers)
			}
		}
	})

	attack("the names of members inside the project of another, by its admin", "idea: an admin of one project impersonates a member of two", func(ctx SpecContext) {
		admin := kit.UserOf(super, mallory, "admin", time.Hour, mastersGroup)
		own := "/tenants/" + mallory.Key() + "/api/v1/secrets"
		Expect(door.Ask(ctx, &admin, own, "Impersonate-User", "member:jane").Body).To(ContainSubstring("member:jane"), "in its own tenant")
		Expect(door.Ask(ctx, &admin, bank, "Impersonate-User", "member:jane", "Impersonate-Group", "member:bankers").Code).To(Equal(http.StatusForbidden))
	})

	attack("a project after the membership was revoked, on connections that are open", "idea: a request is authorized once", func(ctx SpecContext) {
		kit.Create(ctx, victim.Client, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "jane"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "member:jane"}},
		})
		Eventually(func() int { return door.Ask(ctx, &jane, bank).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK))
		watching := door.Open(ctx, &jane, bank+"?watch=true")
		Expect(watching.StatusCode).To(Equal(http.StatusOK))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			buffer := make([]byte, 1<<16)
			for {
				if _, err := watching.Body.Read(buffer); err != nil {
					return
				}
			}
		}()
		kit.Edit(ctx, super.Client, victim.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Members = vc.Spec.Members[1:] })
		Eventually(ended).WithTimeout(kit.Soon).Should(BeClosed())
		Expect(door.Ask(ctx, &jane, bank).Code).To(Equal(http.StatusForbidden))
		Eventually(func() int { return door.Ask(ctx, &jane, all+"/bank").Code }).Should(Equal(http.StatusNotFound), "the directory learns it apart")
	})
})
