package integration

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// projectsPath is where the gateway serves projects.
const projectsPath = "/tenants/projects/apis/tenancy.x-k8s.io/v1alpha1/projects"

// withMembers returns a change that gives a VirtualCluster users as members.
func withMembers(users ...string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Members = nil
		for _, each := range users {
			vc.Spec.Members = append(vc.Spec.Members, tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: each})
		}
	}
}

// setMembers replaces the members of a tenant.
func setMembers(ctx context.Context, t *local.Tenant, users ...string) {
	GinkgoHelper()
	changeVC(ctx, t, withMembers(users...))
}

// letsView binds a user of a tenant to the ClusterRole view.
func letsView(ctx context.Context, t *local.Tenant, user string) {
	GinkgoHelper()
	kit.Create(ctx, t.Client, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "views-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
}

var _ = Describe("Projects", Ordered, ContinueOnFailure, func() {
	const build = "system:serviceaccount:vc-system:build"
	var (
		shop, store *local.Tenant
		door        kit.Door
		token       []string // the header of the user build
		kubeconfig  string   // of that user, for the API of projects
	)

	// try runs an unmodified kubectl as build.
	try := func(ctx context.Context, args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, os.Getenv(kubectlBinary), append([]string{"--kubeconfig", kubeconfig}, args...)...).CombinedOutput()
		return string(out), err
	}
	// kubectl does the same, and expects that it succeeds.
	kubectl := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		out, err := try(ctx, args...)
		Expect(err).NotTo(HaveOccurred(), out)
		return out
	}

	BeforeAll(func(ctx SpecContext) {
		aliasIsFree(ctx, "shop")
		shop, store = tenant(ctx, withAlias("shop"), withMembers("jane", build)), tenant(ctx)
		_, config := newAccount(ctx, "build")
		token = []string{"Authorization", "Bearer " + config.BearerToken}
		kit.AllowClientCA(ctx, super)
		door = kit.StartGateway(ctx, super, shop, func(o *gateway.Options) { o.Projects = true })
		through(ctx, store)
		file := clientcmdapi.NewConfig()
		file.Clusters["gw"] = &clientcmdapi.Cluster{Server: "https://" + door.Address + "/tenants/projects", CertificateAuthorityData: door.CA}
		file.AuthInfos["build"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
		file.Contexts["gw"] = &clientcmdapi.Context{Cluster: "gw", AuthInfo: "build"}
		file.CurrentContext = "gw"
		kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*file, kubeconfig)).To(Succeed())
	})

	It("are listed, got and watched by kubectl, for their members", func(ctx SpecContext) {
		Eventually(try).WithContext(ctx).WithArguments("get", "projects").WithTimeout(kit.Soon).Should(MatchRegexp(`(?m)^NAME\s+PHASE\s+VERSION\s+AGE\n^shop\s+`))
		Expect(kubectl(ctx, "get", "projects.tenancy.x-k8s.io", "-o", "wide")).To(ContainSubstring(shop.Key()))
		Expect(kubectl(ctx, "get", "project", "shop", "-o", "yaml")).To(And(ContainSubstring("clusterKey: "+shop.Key()), Not(ContainSubstring("members"))))
		Expect(kubectl(ctx, "get", "projects", "-o", "name")).To(Equal("project.tenancy.x-k8s.io/shop\n"))
		Expect(kubectl(ctx, "describe", "project", "shop")).To(ContainSubstring(shop.Key()))
		Expect(kubectl(ctx, "api-resources", "--no-headers")).To(MatchRegexp(`(?m)^projects\s+tenancy.x-k8s.io/v1alpha1\s+false\s+Project$`))
		Expect(kubectl(ctx, "get", "projects", "-w", "--request-timeout=10s")).To(ContainSubstring("shop"))
		jane, joe := kit.SuperUser(super, "jane"), kit.SuperUser(super, "joe")
		Eventually(func() string { return door.Ask(ctx, &jane, projectsPath).Body }).WithTimeout(kit.Soon).Should(ContainSubstring(`"name":"shop"`))
		Expect(door.Ask(ctx, &joe, projectsPath).Body).To(ContainSubstring(`"items":[]`))
	})

	It("lead their members to the tenant, whose RBAC decides", func(ctx SpecContext) {
		jane := kit.SuperUser(super, "jane", "system:masters")
		const pods = "/tenants/shop/api/v1/namespaces/default/pods"
		Eventually(func() string { return door.Ask(ctx, &jane, pods).Body }).WithTimeout(kit.Soon).Should(ContainSubstring(`\"member:jane\" cannot list`))
		Expect(door.Ask(ctx, nil, pods, token...).Body).To(ContainSubstring(`\"member:` + build + `\" cannot list`))
		letsView(ctx, shop, "member:jane")
		letsView(ctx, shop, "member:"+build)
		for _, path := range []string{pods, "/tenants/" + shop.Key() + "/api/v1/pods", "/api/v1/tenants/shop/pods", "/api/v1/pods?project=shop"} {
			Eventually(func() int { return door.Ask(ctx, &jane, path).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK), path)
			Eventually(func() int { return door.Ask(ctx, nil, path, token...).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK), path)
		}
		Expect(door.Ask(ctx, &jane, "/tenants/"+store.Key()+"/api").Code).To(Equal(http.StatusForbidden), "she is no member")
		Expect(door.Ask(ctx, &jane, "/tenants/system/api").Code).To(Equal(http.StatusForbidden), "the super cluster is closed")
	})

	It("lead their members to a converted tenant, beside the users of its own CA", func(ctx SpecContext) {
		light := kit.Tenant(ctx, super, kit.VirtualCluster(converted, withAlias("light"), withMembers("jane", build)))
		keys := &corev1.Secret{}
		Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: light.Key(), Name: "converted-keys"}, keys)).To(Succeed())
		now := time.Now()
		pair := must(pki.ParseAuthorities(keys.Data["ca.crt"], keys.Data["ca.key"], now).Signer(now).Client("zoe", []string{"team"}, time.Hour, now))
		jane, zoe := kit.SuperUser(super, "jane", "system:masters"), must(tls.X509KeyPair(pair.CertPEM, pair.KeyPEM))
		const path = "/tenants/light/api/v1/namespaces/default/configmaps"
		for user, certificate := range map[string]tls.Certificate{"member:jane": jane, "zoe": zoe} {
			Eventually(func() string { return door.Ask(ctx, &certificate, path).Body }).WithTimeout(kit.Soon).Should(ContainSubstring(`\"` + user + `\" cannot list`))
			letsView(ctx, light, user)
			Eventually(func() int { return door.Ask(ctx, &certificate, path).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK), user)
			Expect(door.Ask(ctx, &certificate, "/tenants/light/api/v1/namespaces/default/secrets").Code).To(Equal(http.StatusForbidden))
		}
		Expect(door.Ask(ctx, nil, path, token...).Body).To(ContainSubstring(`\"member:` + build + `\" cannot list`))
		setMembers(ctx, light)
		Eventually(func() int { return door.Ask(ctx, &jane, path).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusForbidden))
		Expect(door.Ask(ctx, &zoe, path).Code).To(Equal(http.StatusOK))
	})

	It("are listed and chosen by kubectl vc project", func(ctx SpecContext) {
		own := filepath.Join(kit.TempDir(), "config")
		file := must(clientcmd.LoadFromFile(kubeconfig))
		before := must(clientcmd.Write(*file))
		Expect(clientcmd.WriteToFile(*file, own)).To(Succeed())
		project := func(verb ...string) printed {
			GinkgoHelper()
			return kubectlVCWith(ctx, own, append([]string{"project"}, verb...)...)
		}
		missing := project("current")
		Expect(missing.Code).To(Equal(exit.NotFound))
		golden("project-current-none", missing.Err)
		unknown := project("use", "store")
		Expect(unknown.Code).To(Equal(exit.NotFound))
		golden("project-use-unknown", unknown.Err)
		Expect(must(clientcmd.Write(*must(clientcmd.LoadFromFile(own))))).To(Equal(before), "an unknown project is not stored")
		golden("project-use", project("use", "shop").Out)
		Expect(project("current").Out).To(Equal("shop\n"))
		golden("project-list", project("list").Out)
		Expect(project("list", "-o", "wide").Out).To(ContainSubstring(shop.Key()))
		Expect(project("list", "-o", "name").Out).To(Equal("project.tenancy.x-k8s.io/shop\n"))
		golden("project-get", project("get", "shop").Out)
		golden("project-get-missing", project("get", "store").Err)
		Expect(project("get", "shop", "-o", "jsonpath={.status.clusterKey}").Out).To(Equal(shop.Key()))
		letsView(ctx, shop, "member:"+build)
		out, err := exec.CommandContext(ctx, os.Getenv(kubectlBinary), "--kubeconfig", own, "get", "configmaps", "-o", "name").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(ContainSubstring("kube-root-ca.crt"), "kubectl uses the default project")
		golden("project-unset", project("unset").Out)
		golden("project-unset-none", project("unset").Err)
		Expect(must(clientcmd.Write(*must(clientcmd.LoadFromFile(own))))).To(Equal(before))
		directly := kubectlVC(ctx, "project", "list")
		Expect(directly.Code).NotTo(Equal(exit.Done), "the super cluster is no gateway")
		Expect(directly.Err).To(ContainSubstring("whose server is the gateway"))
	})

	It("are lost at once by a member who is revoked, and so are open watches", func(ctx SpecContext) {
		setMembers(ctx, shop, "jane", build)
		jane := kit.SuperUser(super, "jane")
		letsView(ctx, shop, "member:jane")
		const events = "/tenants/shop/api/v1/configmaps?watch=true"
		Eventually(func() int { return door.Ask(ctx, &jane, "/tenants/shop/api/v1/configmaps").Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK))
		inside, ofProjects := door.Open(ctx, &jane, events), door.Open(ctx, &jane, projectsPath+"?watch=true")
		Expect(inside.StatusCode).To(Equal(http.StatusOK))
		seen := json.NewDecoder(ofProjects.Body)
		next := func() string {
			GinkgoHelper()
			var event struct {
				Type string `json:"type"`
			}
			Expect(seen.Decode(&event)).To(Succeed())
			return event.Type
		}
		Expect(next()).To(Equal("ADDED"))
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, inside.Body)
			ended <- err
		}()
		setMembers(ctx, shop, build)
		Eventually(ended).WithTimeout(kit.Soon).Should(Receive())
		Eventually(next).WithTimeout(kit.Soon).Should(Equal("DELETED"))
		for _, path := range []string{events, "/tenants/shop/api/v1/configmaps", projectsPath + "/shop"} {
			Expect(door.Ask(ctx, &jane, path).Code).To(Or(Equal(http.StatusForbidden), Equal(http.StatusNotFound)), path)
		}
		Expect(strings.TrimSpace(kubectl(ctx, "get", "projects", "-o", "name"))).NotTo(BeEmpty(), "others keep it")
	})
})
