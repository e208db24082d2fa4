package installed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// domain is the one below which tenants have names. It is not resolved: clients
// connect to HAProxy, as with the record *.DOMAIN, and send the name.
const domain = "tenants.example.com"

// kubectlOf returns a function that runs kubectl of a tenant, at an address at which
// it sends the tenant's name. A command that does not end is stopped with the spec.
func kubectlOf(ctx context.Context, t *local.Tenant, address string) func(args ...string) *exec.Cmd {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}}
	Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
	config, err := clientcmd.Load(secret.Data[names.AdminKubeconfigKey])
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		Expect(cluster.Server).To(Equal("https://" + t.Key() + "." + domain))
		cluster.Server, cluster.TLSServerName = "https://"+address, t.Key()+"."+domain
	}
	file := filepath.Join(kit.TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return func(args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, beside("node/kubectl"), args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+file)
		return command
	}
}

// shouldWorkThroughHAProxy asserts that users of a tenant get, watch and execute
// through HAProxy, and that clients who name no tenant reach nothing.
func shouldWorkThroughHAProxy(ctx context.Context, t *local.Tenant, pod *corev1.Pod, backend string) {
	GinkgoHelper()
	kubectl := kubectlOf(ctx, t, kit.StartHAProxy(ctx, domain, backend))
	run := func(args ...string) string {
		GinkgoHelper()
		out, err := kubectl(args...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}

	Expect(run("get", "pods", "--output=name")).To(ContainSubstring("pod/" + pod.Name))
	session, err := gexec.Start(kubectl("get", "configmaps", "--watch", "--output=name"), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(kit.Soon) })
	Eventually(session.Out.Contents).Should(ContainSubstring("kube-root-ca.crt"))
	run("create", "configmap", "watched")
	Eventually(session.Out.Contents).Should(ContainSubstring("configmap/watched"))
	Expect(run("exec", pod.Name, "--", "/agnhost", "--help")).To(ContainSubstring("Available Commands"))
	run("delete", "configmap", "watched")

	out, err := kubectl("get", "pods", "--tls-server-name=unknown."+domain).CombinedOutput()
	Expect(err).To(HaveOccurred(), string(out))
}
