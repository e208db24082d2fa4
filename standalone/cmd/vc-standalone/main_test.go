package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/standalone/internal/childprocess"
)

const (
	startPatience = 3 * time.Minute
	stopPatience  = time.Minute
)

func TestMain(m *testing.M) {
	childprocess.RunIfChild(main)
	os.Exit(m.Run())
}

// TestLife starts vc-standalone twice in the same directory, and tries what
// must not work meanwhile.
func TestLife(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	first := up(t, "--data-dir", dir, "--port", "0", "--nodes", "3")
	g.Expect(first.Output()).To(MatchRegexp(`(?m)^ready: kubeconfig \S+/super\.kubeconfig, after [0-9.]+ s$`))
	client, kubeconfig := connect(t, dir)
	g.Expect(nodesOf(t, client)).To(ConsistOf("node-1", "node-2", "node-3"))
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	runPod(t, client)

	refused(t, "is in use by another vc-standalone (pid ", "up", "--data-dir", dir, "--port", "0")
	refused(t, "is taken", "up", "--data-dir", filepath.Join(t.TempDir(), "other"), "--port", portOf(t, kubeconfig))

	stopped(t, first, syscall.SIGTERM)
	second := up(t, "--data-dir", dir, "--port", "0", "--nodes", "2")
	client, again := connect(t, dir)
	g.Expect(again).To(Equal(kubeconfig), "the port and all credentials are those of the first start")
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(nodesOf(t, client)).To(ConsistOf("node-1", "node-2"))
	runPod(t, client)
	stopped(t, second, syscall.SIGINT)
}

func TestRefusals(t *testing.T) {
	newer := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(newer, "vc-standalone.json"), []byte(`{"layout":99}`), 0o600)).To(Succeed())
	for name, test := range map[string]struct {
		says string
		args []string
	}{
		"no directory":       {"--data-dir is missing", []string{"up"}},
		"a newer directory":  {"was written by a newer vc-standalone", []string{"up", "--data-dir", newer}},
		"a file":             {"is a file", []string{"up", "--data-dir", filepath.Join(newer, "vc-standalone.json")}},
		"no address":         {"--listen is", []string{"up", "--data-dir", "unused", "--listen", "localhost"}},
		"no port":            {"--port is 70000", []string{"up", "--data-dir", "unused", "--port", "70000"}},
		"too few nodes":      {`"-1" for "--nodes"`, []string{"up", "--data-dir", "unused", "--nodes", "-1"}},
		"an unknown flag":    {"unknown flag", []string{"up", "--what"}},
		"an unknown command": {"unknown command", []string{"down"}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.says, test.args...) })
	}
}

// TestDemo plays the demo, which checks itself.
func TestDemo(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	p, err := childprocess.Start(t.Context(), "demo")
	g.Expect(err).NotTo(HaveOccurred())
	code, err := p.AwaitEnd(within(t, 2*startPatience))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(BeZero(), "%s\n%s", p.Output(), p.Stderr())
	g.Expect(os.ReadDir(os.Getenv("TMPDIR"))).To(BeEmpty(), "the demo cleans up")
}

func within(t *testing.T, patience time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func up(t *testing.T, args ...string) *childprocess.Process {
	t.Helper()
	g := NewWithT(t)
	p, err := childprocess.Start(t.Context(), append([]string{"up"}, args...)...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.AwaitReady(within(t, startPatience))).To(Succeed())
	return p
}

func stopped(t *testing.T, p *childprocess.Process, signal os.Signal) {
	t.Helper()
	g := NewWithT(t)
	code, err := p.Stop(within(t, stopPatience), signal)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(BeZero(), "stderr: %s", p.Stderr())
	g.Expect(p.Stderr()).To(BeEmpty())
}

// refused expects exit code 1 and one line on standard error.
func refused(t *testing.T, says string, args ...string) {
	t.Helper()
	g := NewWithT(t)
	p, err := childprocess.Start(t.Context(), args...)
	g.Expect(err).NotTo(HaveOccurred())
	code, err := p.AwaitEnd(within(t, startPatience))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(1))
	g.Expect(p.Stderr()).To(And(HavePrefix("vc-standalone: "), ContainSubstring(says), Not(ContainSubstring("\n"))))
}

func connect(t *testing.T, dir string) (kubernetes.Interface, string) {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join(dir, "super.kubeconfig")
	data, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return client, string(data)
}

func portOf(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return config.Host[strings.LastIndex(config.Host, ":")+1:]
}

func nodesOf(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// runPod expects a pod to run soon, and to be gone soon once it is deleted.
func runPod(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	pods := client.CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "short"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		pod, err := pods.Get(t.Context(), "short", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
		g.Expect(pod.Status.ContainerStatuses[0].Ready).To(BeTrue())
		g.Expect(pod.Status.PodIP).To(HavePrefix("10."))
	}, startPatience, "20ms").Should(Succeed())
	g.Expect(pods.Delete(t.Context(), "short", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error {
		_, err := pods.Get(t.Context(), "short", metav1.GetOptions{})
		return err
	}, startPatience, "20ms").Should(MatchError(ContainSubstring("not found")))
}
