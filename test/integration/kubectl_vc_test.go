package integration

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/access"
	"github.com/virtualcluster/virtualcluster/cli/command"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// rewriteGolden is an environment variable: if it is set, specs write golden
// files instead of comparing with them.
const rewriteGolden = "REWRITE_GOLDEN"

// printed is what a command line printed.
type printed struct {
	Code     int
	Out, Err string
}

// kubectlVC runs a command line of kubectl vc on the super cluster.
func kubectlVC(ctx context.Context, args ...string) printed {
	GinkgoHelper()
	return kubectlVCWith(ctx, filepath.Join(super.Dir, "super.kubeconfig"), args...)
}

// kubectlVCWith runs a command line of kubectl vc with a kubeconfig.
func kubectlVCWith(ctx context.Context, file string, args ...string) printed {
	GinkgoHelper()
	out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
	code := command.Main(ctx, streams, append([]string{args[0], "--kubeconfig=" + file}, args[1:]...))
	return printed{code, out.String(), errOut.String()}
}

// succeed matches a command line that succeeded.
func succeed() OmegaMatcher { return HaveField("Code", exit.Done) }

// varying replaces what differs in each run of a spec.
var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`-[0-9a-f]{6}-`), "-xxxxxx-"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "https://ADDRESS"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`(?m)\b(\d+(ms|[smh]))+( +|$)`), "AGE$3"}, // also 2m5s
	{regexp.MustCompile(`v1\.\d+\.\d+`), "v1.x.y"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(` +\n`), "\n"},
	{regexp.MustCompile(`(\S) {2,}`), "$1  "}, // the width of columns
}

// golden compares an output with a file in testdata.
func golden(name, output string) {
	GinkgoHelper()
	for _, v := range varying {
		output = v.what.ReplaceAllString(output, v.with)
	}
	file := filepath.Join("testdata", "kubectl-vc", name+".txt")
	if os.Getenv(rewriteGolden) != "" {
		Expect(os.WriteFile(file, []byte(output), 0o644)).To(Succeed())
		return
	}
	Expect(output).To(Equal(string(must(os.ReadFile(file)))), "%s; %s=1 writes the file", name, rewriteGolden)
}

var _ = Describe("kubectl vc", Ordered, ContinueOnFailure, func() {
	const team = "cli"
	key := client.ObjectKey{Namespace: team, Name: "red"}
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "red"}}

	BeforeAll(func() {
		length := format.MaxLength
		format.MaxLength = 0
		DeferCleanup(func() { format.MaxLength = length })
		DeferCleanup(func(ctx SpecContext) {
			beginRemoval(ctx, vc)
			Expect(client.IgnoreNotFound(super.Client.Delete(ctx, kit.Namespace(team)))).To(Succeed())
		})
	})

	It("prints a manifest without sending it", func(ctx SpecContext) {
		p := kubectlVC(ctx, "create", "red", "-n", team, "--isolation=Shared", "--sleep-after=600", "--dry-run=client", "-o", "yaml")
		Expect(p).To(succeed())
		golden("create-dry-run", p.Out)
		kit.ShouldStayAbsent(ctx, super.Client, vc.DeepCopy())
	})

	It("names the next step when the namespace is missing", func(ctx SpecContext) {
		p := kubectlVC(ctx, "create", "red", "-n", team)
		Expect(p.Code).To(Equal(exit.NotFound))
		golden("create-no-namespace", p.Err)
	})

	It("creates a tenant and prints its conditions until it is Ready", func(ctx SpecContext) {
		p := kubectlVC(ctx, "create", "red", "-n", team, "--create-namespace", "--wait")
		Expect(p).To(succeed())
		golden("create", p.Out)
		Expect(p.Err).To(MatchRegexp(`(?m)^  ControlPlaneReady=True \(Ready\)`))
		Expect(p.Err).To(HaveSuffix("VirtualCluster cli/red is Ready\n"))
		Expect(kit.Get(ctx, super.Client, vc)).To(Succeed())
		Expect(meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionReady)).To(BeTrue())
	})

	It("does not create it twice", func(ctx SpecContext) {
		p := kubectlVC(ctx, "create", "red", "-n", team)
		Expect(p.Code).To(Equal(exit.Failed))
		golden("create-exists", p.Err)
	})

	DescribeTable("prints tenants", func(ctx SpecContext, name string, args ...string) {
		Eventually(kit.Read(ctx, super.Client, vc)).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionTrue, tenancyv1alpha1.ReasonNothingPending))
		p := kubectlVC(ctx, args...)
		Expect(p).To(succeed())
		golden(name, p.Out+p.Err)
	},
		Entry("as a table", "list", "list", "-n", team),
		Entry("as a wide table", "list-wide", "list", "-n", team, "-o", "wide"),
		Entry("by name", "list-name", "list", "-n", team, "-o", "name"),
		Entry("none", "list-none", "list", "-n", team, "-l", "no=label"),
		Entry("one", "get", "get", "red", "-n", team),
		Entry("a field of one", "get-field", "get", "red", "-n", team, "-o", "jsonpath={.status.clusterNamespace}"),
	)

	It("says where to find a name that does not exist", func(ctx SpecContext) {
		p := kubectlVC(ctx, "get", "green", "-n", team)
		Expect(p.Code).To(Equal(exit.NotFound))
		golden("get-missing", p.Err)
	})

	It("completes names", func(ctx SpecContext) {
		kubeconfig := "--kubeconfig=" + filepath.Join(super.Dir, "super.kubeconfig")
		out := &bytes.Buffer{}
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: GinkgoWriter}
		Expect(command.Main(ctx, streams, []string{"__complete", kubeconfig, "get", "-n", team, ""})).To(Equal(exit.Done))
		Expect(out.String()).To(HavePrefix("red\n"))
		out.Reset()
		object := []string{"__complete", kubeconfig, "sync", "-n", team, "--tenant-namespace", metav1.NamespaceSystem, "red", "cm/"}
		Expect(command.Main(ctx, streams, object)).To(Equal(exit.Done))
		Expect(out.String()).To(ContainSubstring("cm/extension-apiserver-authentication\n"))
	})

	It("prints a kubeconfig that expires", func(ctx SpecContext) {
		p := kubectlVC(ctx, "kubeconfig", "red", "-n", team, "--duration", "10m")
		Expect(p).To(succeed())
		Expect(p.Err).To(HavePrefix("The credentials expire at "))
		c, token := connectBy(p.Out)
		// The apiserver knows the ClusterRoleBinding a moment after it was created.
		Eventually(func() error { return c.List(ctx, &corev1.SecretList{}) }).Should(Succeed(), "it has all permissions")
		Expect(p.Out).NotTo(ContainSubstring("client-key"))
		Expect(p.Out).To(ContainSubstring("/tenants/" + vc.Status.ClusterNamespace + "\n"))
		Expect(p.Out).NotTo(ContainSubstring("tls-server-name"))

		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		Expect(c.Create(ctx, review)).To(Succeed())
		Expect(review.Status.User.Username).To(Equal("system:serviceaccount:kube-system:" + access.Account))

		red := must(super.Connect(ctx, vc))
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: access.Account}}
		Expect(red.Client.Delete(ctx, account)).To(Succeed())
		Eventually(func() error { return c.List(ctx, &corev1.SecretList{}) }).Should(MatchError(ContainSubstring("Unauthorized")))
	})

	It("prints the permanent kubeconfig, and writes it for its owner only", func(ctx SpecContext) {
		file := filepath.Join(kit.TempDir(), "red.kubeconfig")
		Expect(os.WriteFile(file, nil, 0o644)).To(Succeed())
		Expect(kubectlVC(ctx, "kubeconfig", "red", "-n", team, "--permanent", "--file", file)).To(succeed())
		Expect(must(os.Stat(file)).Mode().Perm()).To(BeEquivalentTo(0o600))
		c, _ := connectBy(string(must(os.ReadFile(file))))
		Expect(c.List(ctx, &corev1.SecretList{})).To(Succeed())
	})

	It("prints each address of a tenant", func(ctx SpecContext) {
		server := func(flag string) string {
			p := kubectlVC(ctx, "kubeconfig", "red", "-n", team, "--permanent", flag)
			Expect(p).To(succeed())
			config := must(clientcmd.RESTConfigFromKubeConfig([]byte(p.Out)))
			Expect(must(local.NewClient(config)).List(ctx, &corev1.SecretList{})).To(Succeed(), flag)
			return config.Host
		}
		Expect(server("--gateway")).To(HaveSuffix("/tenants/" + vc.Status.ClusterNamespace))
		Expect(server("--direct")).NotTo(ContainSubstring("/tenants/"))
		Expect(kubectlVC(ctx, "kubeconfig", "red", "-n", team, "--direct", "--gateway").Code).To(Equal(exit.Usage))
		Expect(server("--internal")).To(Equal(server("--direct")), "that of a control plane on the same machine")
	})

	It("merges a context and keeps the current one", func(ctx SpecContext) {
		own := filepath.Join(kit.TempDir(), "config")
		Expect(os.WriteFile(own, must(os.ReadFile(filepath.Join(super.Dir, "super.kubeconfig"))), 0o600)).To(Succeed())
		before := must(clientcmd.LoadFromFile(own))
		p := kubectlVC(ctx, "kubeconfig", "red", "-n", team, "--merge", "--kubeconfig", own)
		Expect(p).To(succeed())
		golden("kubeconfig-merge", p.Out)
		after := must(clientcmd.LoadFromFile(own))
		Expect(after.CurrentContext).To(Equal(before.CurrentContext))
		Expect(after.Contexts).To(HaveKey(access.ContextName(key)))
		Expect(after.Contexts).To(HaveLen(len(before.Contexts) + 1))
		config := must(clientcmd.NewNonInteractiveClientConfig(*after, access.ContextName(key), nil, nil).ClientConfig())
		Expect(must(local.NewClient(config)).List(ctx, &corev1.SecretList{})).To(Succeed())
	})

	It("runs a command with the kubeconfig of a tenant, and returns its exit code", func(ctx SpecContext) {
		dir := kit.TempDir()
		own := filepath.Join(super.Dir, "super.kubeconfig")
		before := must(os.ReadFile(own))
		script := `stat -c %a "$KUBECONFIG" "$(dirname "$KUBECONFIG")"/*; echo "$KUBECONFIG" > ` + dir + `/path
			mkdir ` + dir + `/copy; cp "$(dirname "$KUBECONFIG")"/* ` + dir + `/copy; exit 42`
		p := kubectlVC(ctx, "connect", "red", "-n", team, "--", "sh", "-c", script)
		Expect(p.Code).To(Equal(42), p.Err)
		Expect(p.Err).To(BeEmpty())
		Expect(strings.Fields(p.Out)).To(HaveEach("600"))
		Expect(must(os.ReadFile(own))).To(Equal(before))
		path := strings.TrimSpace(string(must(os.ReadFile(dir + "/path"))))
		Expect(path).NotTo(BeAnExistingFile())
		Expect(filepath.Dir(path)).NotTo(BeADirectory())

		kubeconfig := must(clientcmd.LoadFromFile(dir + "/copy/kubeconfig"))
		kubeconfig.AuthInfos[access.ContextName(key)].TokenFile = dir + "/copy/token"
		config := must(clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig())
		Expect(must(local.NewClient(config)).List(ctx, &corev1.SecretList{})).To(Succeed())
	})

	It("runs a command through the gateway on request, without a TLS server name", func(ctx SpecContext) {
		p := kubectlVC(ctx, "connect", "red", "-n", team, "--gateway", "--", "sh", "-c", `cat "$KUBECONFIG"; `+os.Getenv("VC_KUBECTL")+` get namespaces -o name`)
		Expect(p).To(succeed(), p.Err)
		Expect(p.Err).To(MatchRegexp("by the gateway https://.*/tenants/" + vc.Status.ClusterNamespace))
		Expect(p.Out).To(And(ContainSubstring("/tenants/"+vc.Status.ClusterNamespace), ContainSubstring("namespace/kube-system")))
		Expect(p.Out).NotTo(ContainSubstring("tls-server-name"))
	})

	It("describes a tenant", func(ctx SpecContext) {
		Eventually(kit.Read(ctx, super.Client, vc)).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionTrue, tenancyv1alpha1.ReasonNothingPending))
		p := kubectlVC(ctx, "describe", "red", "-n", team, "--events=0")
		Expect(p).To(succeed())
		golden("describe", p.Out)
		Expect(kubectlVC(ctx, "describe", "red", "-n", team).Out).To(ContainSubstring("RootNamespaceCreated"))
		Expect(kubectlVC(ctx, "describe", "red", "-n", team, "-o", "jsonpath={.usage.namespaces}").Out).To(MatchRegexp(`^\d+$`))
	})

	It("explains why an object is not synced, and compares it with its copy when it is", func(ctx SpecContext) {
		const ns = "shop"
		red := must(super.Connect(ctx, vc))
		pod := kit.Pod(ns, "web", withHostPath)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns))) // or an event may say that the pod waits for it
		kit.Create(ctx, red.Client, pod)
		Eventually(kit.Rejections(ctx, red, pod)).WithTimeout(2 * kit.Soon).ShouldNot(BeEmpty())
		compare := []string{"sync", "red", "pod/web", "-n", team, "--tenant-namespace", ns}
		p := kubectlVC(ctx, compare...)
		Expect(p.Code).To(Equal(exit.NotSynced), p.Err)
		golden("sync-rejected", p.Out)
		p = kubectlVC(ctx, "sync", "red", "-n", team)
		Expect(p.Code).To(Equal(exit.NotSynced), p.Err)
		Expect(p.Out).To(MatchRegexp(`(?m)^Pod shop/web +\S+ +Rejected `))

		Expect(red.Client.Delete(ctx, pod)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, kit.Pod(ns, "web"))
		kit.Create(ctx, red.Client, kit.Pod(ns, "web"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(HaveLen(1))
		Eventually(func() printed { return kubectlVC(ctx, compare...) }).WithTimeout(2 * kit.Soon).WithPolling(time.Second).Should(And(
			succeed(), HaveField("Out", HavePrefix("Synced\n")), HaveField("Out", MatchRegexp(`(?m)^phase +Running +Running`))))
		Eventually(func() printed { return kubectlVC(ctx, "sync", "red", "-n", team) }).WithPolling(time.Second).Should(succeed())

		p = kubectlVC(ctx, "sync", "red", "pod/none", "-n", team, "--tenant-namespace", ns)
		Expect(p.Code).To(Equal(exit.NotFound))
		golden("sync-missing", p.Err)
		p = kubectlVC(ctx, "sync", "red", "gadget/none", "-n", team)
		Expect(p.Code).To(Equal(exit.Failed))
	})

	It("shows no terminal what a tenant hides in a message", func(ctx SpecContext) {
		red := must(super.Connect(ctx, vc))
		hostile := kit.Pod(metav1.NamespaceDefault, "hostile")
		kit.Create(ctx, red.Client, hostile)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, hostile))).ShouldNot(BeNil())
		kit.Create(ctx, red.Client, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "hostile"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: hostile.Namespace, Name: hostile.Name, UID: hostile.UID},
			Source:         corev1.EventSource{Component: "vc-syncer"}, Type: corev1.EventTypeWarning, Reason: "SyncRejected",
			Message: "\x1b[2J\x1b[Hall is well\n\u202eNothing", LastTimestamp: metav1.Now(),
		})
		p := kubectlVC(ctx, "sync", "red", "pod/hostile", "-n", team)
		Expect(p.Out).To(ContainSubstring(`\u001b[2J\u001b[Hall is well\n\u202eNothing`))
		Expect(p.Out).NotTo(ContainSubstring("\x1b"))
	})

	It("stops and wakes a control plane", func(ctx SpecContext) {
		p := kubectlVC(ctx, "sleep", "red", "-n", team, "--wait")
		Expect(p).To(succeed())
		golden("sleep", p.Out)
		Expect(must(kit.Read(ctx, super.Client, vc)())).To(
			kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonPaused))

		p = kubectlVC(ctx, "kubeconfig", "red", "-n", team)
		Expect(p.Code).To(Equal(exit.Unreachable))
		golden("kubeconfig-paused", p.Err)

		p = kubectlVC(ctx, "wake", "red", "-n", team, "--wait")
		Expect(p).To(succeed())
		golden("wake", p.Out)
		Expect(must(kit.Read(ctx, super.Client, vc)())).To(
			kit.HaveCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	})

	It("reports the unmet condition when the timeout expires", func(ctx SpecContext) {
		secret := "missing"
		waiting := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "elsewhere"}}
		DeferCleanup(func(ctx SpecContext) { beginRemoval(ctx, waiting) })
		p := kubectlVC(ctx, "create", "elsewhere", "-n", team, "--provisioner=External", "--kubeconfig-secret", secret, "--wait", "--timeout=15s")
		Expect(p.Code).To(Equal(exit.TimedOut))
		golden("create-timeout", regexp.MustCompile(`(?m)^  .*\n`).ReplaceAllString(p.Err, ""))
	})

	It("deletes a tenant after confirmation only", func(ctx SpecContext) {
		p := kubectlVC(ctx, "delete", "red", "-n", team)
		Expect(p.Code).To(Equal(exit.Usage))
		golden("delete-unconfirmed", p.Err)
		Expect(kit.Get(ctx, super.Client, vc)).To(Succeed())

		p = kubectlVC(ctx, "delete", "red", "-n", team, "--yes", "--timeout", "5m")
		Expect(p).To(succeed())
		golden("delete", p.Out)
		kit.ShouldVanish(ctx, super.Client, vc.DeepCopy())
	}, NodeTimeout(8*kit.Soon))
})

// connectBy returns a client of a kubeconfig, and its token.
func connectBy(kubeconfig string) (client.Client, string) {
	GinkgoHelper()
	config := must(clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig)))
	return must(local.NewClient(config)), config.BearerToken
}
