package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// programs run kubectl and Helm with a kubeconfig.
type programs struct{ dir, kubeconfig string }

func (p programs) command(ctx context.Context, binary string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Getenv(binary), args...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "HOME="+p.dir, "HELM_CACHE_HOME="+p.dir, "HELM_CONFIG_HOME="+p.dir, "HELM_DATA_HOME="+p.dir)
	return command
}

func (p programs) kubectl(ctx context.Context, args ...string) (string, error) {
	out, err := p.command(ctx, kubectlBinary, args...).CombinedOutput()
	return string(out), err
}

func (p programs) start(ctx context.Context, args ...string) *gexec.Session {
	GinkgoHelper()
	session, err := gexec.Start(p.command(ctx, kubectlBinary, args...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

// does matches what a program printed without failing.
func (p programs) does(ctx context.Context, want string, args ...string) {
	GinkgoHelper()
	out, err := p.kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	Expect(out).To(ContainSubstring(want), "kubectl %v", args)
}

func (p programs) helm(ctx context.Context, args ...string) {
	GinkgoHelper()
	out, err := p.command(ctx, kit.HelmBinary, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// write writes a file into the folder of the programs.
func (p programs) write(name, content string) {
	GinkgoHelper()
	file := filepath.Join(p.dir, name)
	Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
	Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
}

var _ = Describe("kubectl and Helm through the gateway", Ordered, ContinueOnFailure, func() {
	var (
		red  *local.Tenant
		door kit.Door
	)

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		through(ctx, red)
		door = startGateway(ctx, red)
	})

	// programsAt returns programs whose kubeconfig has a server and a TLS server
	// name.
	programsAt := func(path, serverName string) programs {
		GinkgoHelper()
		p := programs{dir: GinkgoT().TempDir()}
		p.kubeconfig = filepath.Join(p.dir, "kubeconfig")
		certificate := kit.UserPEM(super, red.Key(), "admin", time.Hour, masters)
		config := clientcmdapi.NewConfig()
		config.Clusters["a"] = &clientcmdapi.Cluster{
			Server: "https://" + door.Address + path, TLSServerName: serverName, CertificateAuthorityData: door.CA,
		}
		config.AuthInfos["a"] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate.CertPEM, ClientKeyData: certificate.KeyPEM}
		config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
		config.CurrentContext = "a"
		Expect(clientcmd.WriteToFile(*config, p.kubeconfig)).To(Succeed())
		return p
	}

	for name, form := range map[string]struct{ path, serverName func() string }{
		"the prefix":    {func() string { return "/tenants/" + red.Key() }, func() string { return "" }},
		"the host":      {func() string { return "" }, func() string { return red.Key() + "." + gatewayDomain }},
		"the signature": {func() string { return "" }, func() string { return "" }},
	} {
		It("work by "+name, func(ctx SpecContext) {
			p := programsAt(form.path(), form.serverName())
			ns := "by-" + name[len("the "):]
			p.does(ctx, "created", "create", "namespace", ns)
			watch := p.start(ctx, "get", "configmaps", "-n", ns, "--watch", "-o", "name")
			p.write("web.yaml", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: %s}, data: {a: b}}", ns))
			p.does(ctx, "created", "apply", "-f", "web.yaml")
			p.does(ctx, "serverside-applied", "apply", "--server-side", "--force-conflicts", "-f", "web.yaml")
			Eventually(watch.Out).WithTimeout(kit.Soon).Should(gbytes.Say("configmap/web"))
			p.does(ctx, "web", "get", "configmaps", "-n", ns)
			p.does(ctx, "a: b", "get", "configmap", "web", "-n", ns, "-o", "yaml")
			p.does(ctx, "rollingUpdate", "explain", "deployment.spec.strategy")
			p.does(ctx, "deployments", "api-resources")
			p.does(ctx, ns, "get", "--raw", "/api/v1/tenants/"+red.Key()+"/namespaces/"+ns)
			p.does(ctx, "jane", "auth", "whoami", "--as", "jane", "--as-group", "developers")
			out, err := p.kubectl(ctx, "get", "secrets", "-n", ns, "--as", "jane")
			Expect(err).To(HaveOccurred())
			Expect(out).To(ContainSubstring(`User "jane" cannot list`))

			By("with uploads up to the limits")
			p.write("large", strings.Repeat("0123456789abcdef", 900<<10/16))
			p.does(ctx, "created", "create", "configmap", "large", "-n", ns, "--from-file", "large")
			p.write("huge", strings.Repeat("0123456789abcdef", 9<<20/16))
			out, err = p.kubectl(ctx, "create", "configmap", "huge", "-n", ns, "--from-file", "huge")
			Expect(err).To(HaveOccurred())
			Expect(out).To(ContainSubstring("limit is 8388608 bytes"))

			By("by a proxy on the machine of the client")
			proxy := p.start(ctx, "proxy", "--port=0")
			Eventually(proxy.Out).WithTimeout(kit.Soon).Should(gbytes.Say(`Starting to serve on 127\.0\.0\.1:\d+`))
			address := "http://" + strings.TrimSpace(string(proxy.Out.Contents())[len("Starting to serve on "):])
			response := must(http.Get(address + "/api/v1/namespaces/" + ns))
			Expect(response.Body.Close()).To(Succeed())
			Expect(response.StatusCode).To(Equal(http.StatusOK))

			By("with Helm")
			p.write("chart/Chart.yaml", "{apiVersion: v2, name: shop, version: 1.0.0}")
			p.write("chart/values.yaml", "text: first")
			p.write("chart/templates/map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}, data: {text: {{ .Values.text | quote }}}}")
			p.helm(ctx, "install", "shop", "chart", "-n", ns)
			p.helm(ctx, "upgrade", "shop", "chart", "-n", ns, "--set", "text=second")
			p.does(ctx, "second", "get", "configmap", "shop", "-n", ns, "-o", "jsonpath={.data.text}")
			p.helm(ctx, "rollback", "shop", "1", "-n", ns)
			p.does(ctx, "first", "get", "configmap", "shop", "-n", ns, "-o", "jsonpath={.data.text}")
			p.helm(ctx, "uninstall", "shop", "-n", ns)
			p.does(ctx, "deleted", "delete", "namespace", ns, "--wait=false")
		}, SpecTimeout(6*kit.Soon))
	}
})
