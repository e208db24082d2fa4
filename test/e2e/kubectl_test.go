package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("kubectl with a tenant's kubeconfig", func() {
	Describe("of its own address", Ordered, func() { useKubectl(names.AdminKubeconfigKey) })
	Describe("of the gateway", Ordered, func() { useKubectl(names.GatewayKubeconfigKey) })
})

// useKubectl has the specs of kubectl with a kubeconfig in the Secret of a
// tenant.
func useKubectl(key string) {
	var (
		worker *corev1.Pod
		as     *kubectl
	)

	BeforeAll(func(ctx SpecContext) {
		worker = pod(newNamespace(ctx, red), "worker", busybox, "sh", "-c", "echo begun; while true; do sleep 1; done")
		create(ctx, red, worker)
		shouldBeReady(ctx, red, worker)
		as = kubectlWith(ctx, red, key)
	})

	It("shows what a container writes", Label(smoke), func(ctx SpecContext) {
		Eventually(as.run).WithContext(ctx).WithArguments("", "logs", "-n", worker.Namespace, worker.Name).Should(Equal("begun\n"))
	})

	It("runs a command in a container, with its input, its output and its end", Label(smoke), func(ctx SpecContext) {
		Expect(as.run(ctx, "a line", "exec", "-i", "-n", worker.Namespace, worker.Name, "--", "cat")).To(Equal("a line"))
		_, err := as.run(ctx, "", "exec", "-n", worker.Namespace, worker.Name, "--", "sh", "-c", "exit 7")
		Expect(err).To(MatchError(ContainSubstring("exit status 7")))
	})

	It("copies files there and back", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
		Expect(os.WriteFile(there, []byte(strings.Repeat("text\n", 1e5)), 0o600)).To(Succeed())
		in := worker.Namespace + "/" + worker.Name + ":/tmp/file"
		_, err := as.run(ctx, "", "cp", there, in)
		Expect(err).NotTo(HaveOccurred())
		_, err = as.run(ctx, "", "cp", in, back)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.ReadFile(back)).To(Equal([]byte(strings.Repeat("text\n", 1e5))))
	})

	It("adds a container that requests too much, and reports why it does not run", func(ctx SpecContext) {
		Expect(as.run(ctx, "", "debug", "-n", worker.Namespace, worker.Name, "--image", busybox, "--target", "main",
			"--container", "tracer", "--profile", "general", "--quiet", "--", "true")).To(BeEmpty())
		Eventually(as.run).WithContext(ctx).WithArguments("", "get", "events", "-n", worker.Namespace, "--field-selector",
			"reason=SyncRejected,involvedObject.name="+worker.Name, "-o", "jsonpath={.items[*].message}").
			Should(And(ContainSubstring("violates PodSecurity"), ContainSubstring("tracer"), ContainSubstring("SYS_PTRACE")))
	})

	It("adds a container to look around with, also after one that was refused", func(ctx SpecContext) {
		Expect(as.run(ctx, "", "debug", "-n", worker.Namespace, worker.Name, "--image", busybox, "--target", "main",
			"--container", "debugger", "--profile", "baseline", "--quiet", "--", "sh", "-c", "echo seen")).To(BeEmpty())
		Eventually(as.run).WithContext(ctx).WithArguments("", "logs", "-n", worker.Namespace, worker.Name, "-c", "debugger").Should(Equal("seen\n"))
	})

	It("does not reach a pod of another tenant", func(ctx SpecContext) {
		for _, command := range [][]string{{"logs"}, {"exec"}} {
			args := slices.Concat(command, []string{"-n", blue.Super("default"), worker.Name})
			if command[0] == "exec" {
				args = append(args, "--", "true")
			}
			_, err := as.run(ctx, "", args...)
			Expect(err).To(MatchError(ContainSubstring("not found")))
		}
	})
}

// kubectl runs kubectl as the admin of a tenant.
type kubectl struct{ kubeconfig string }

// kubectlOf is that of a tenant, which lasts as long as the container of specs.
func kubectlOf(ctx context.Context, t *local.Tenant) *kubectl {
	GinkgoHelper()
	return kubectlBy(ctx, t, kubeconfig.ForAdmin)
}

// kubectlWith does the same with another kubeconfig in the Secret of the tenant.
func kubectlWith(ctx context.Context, t *local.Tenant, key string) *kubectl {
	GinkgoHelper()
	return kubectlBy(ctx, t, func(secret map[string][]byte) []byte { return secret[key] })
}

// kubectlBy does the same with one that a function chooses.
func kubectlBy(ctx context.Context, t *local.Tenant, choose func(secret map[string][]byte) []byte) *kubectl {
	GinkgoHelper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}
	Expect(super.Client.Get(ctx, key, secret)).To(Succeed())
	dir, err := os.MkdirTemp("", "vc-e2e-kubectl-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	k := &kubectl{kubeconfig: filepath.Join(dir, "kubeconfig")}
	Expect(os.WriteFile(k.kubeconfig, choose(secret.Data), 0o600)).To(Succeed())
	return k
}

// config is that of other clients with the same kubeconfig.
func (k *kubectl) config() *rest.Config {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return config
}

// run returns the output of a command. Its error has the error output.
func (k *kubectl) run(ctx context.Context, input string, args ...string) (string, error) {
	command := k.command(ctx, args...)
	command.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, said.String())
	}
	return out.String(), nil
}

// in runs a command in a pod, and returns what it writes.
func (k *kubectl) in(ctx context.Context, p *corev1.Pod, command ...string) (string, error) {
	return k.run(ctx, "", append([]string{"exec", "-n", p.Namespace, p.Name, "--"}, command...)...)
}

// start runs a command with an input until the spec ends.
func (k *kubectl) start(args ...string) (*gexec.Session, io.Writer) {
	GinkgoHelper()
	command := k.command(context.Background(), args...)
	typed, err := command.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session, typed
}

func (k *kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	program := filepath.Join(filepath.Dir(os.Getenv("VC_STANDALONE")), "node", "kubectl")
	return exec.CommandContext(ctx, program, append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
}
