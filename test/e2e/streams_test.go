package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

var _ = Describe("A stream between a tenant's user and a container", func() {
	Describe("at its own address", Ordered, func() { useStreams(names.AdminKubeconfigKey) })
	Describe("through the gateway", Ordered, func() { useStreams(names.GatewayKubeconfigKey) })
})

// useStreams has the specs of streams with a kubeconfig in the Secret of a
// tenant.
func useStreams(key string) {
	var (
		talker *corev1.Pod
		as     *kubectl
	)

	BeforeAll(func(ctx SpecContext) {
		talker = pod(newNamespace(ctx, red), "talker", busybox, "sh", "-c", `echo begun; while read line; do echo "heard $line"; done`)
		talker.Spec.Containers[0].Stdin = true
		talker.Spec.Containers = append(talker.Spec.Containers, corev1.Container{
			Name: "echo", Image: busybox, Args: []string{"nc", "-ll", "-p", "7", "-e", "cat"},
		})
		create(ctx, red, talker)
		shouldBeReady(ctx, red, talker)
		as = kubectlWith(ctx, red, key)
	})

	It("is what is typed and what is said, and the log of it, as it comes", func() {
		log, _ := as.start("logs", "--follow", "-n", talker.Namespace, talker.Name)
		Eventually(log.Out).Should(gbytes.Say("begun\n"))
		attached, typed := as.start("attach", "--stdin", "-n", talker.Namespace, talker.Name)
		for _, word := range []string{"one", "two"} {
			Expect(io.WriteString(typed, word+"\n")).To(Equal(len(word) + 1))
			Eventually(attached.Out).Should(gbytes.Say("heard " + word + "\n"))
			Eventually(log.Out).Should(gbytes.Say("heard "+word+"\n"), "the container runs on, and the line is not held back")
		}
		Expect(log).NotTo(gexec.Exit())
	})

	It("is a terminal with a size", func(ctx SpecContext) {
		said := terminal(ctx, as.config(), talker, `until stty size | grep -q "33 77"; do sleep 0.1; done; tty; echo si''zed; exit 3`)
		Expect(said.end).To(HaveField("Code", 3))
		Expect(said.out).To(And(ContainSubstring("/dev/pts/"), ContainSubstring("\nsized\r\n")))
	})

	It("is a port, in both directions and more than once", func() {
		session, _ := as.start("port-forward", "-n", talker.Namespace, "pod/"+talker.Name, ":7")
		const forwards = "Forwarding from "
		Eventually(session.Out).Should(gbytes.Say(forwards + `127\.0\.0\.1:\d+ -> 7\n`))
		_, after, _ := strings.Cut(string(session.Out.Contents()), forwards)
		address, _, _ := strings.Cut(after, " ")
		for range 2 {
			sent := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
			conn, err := net.Dial("tcp", address)
			Expect(err).NotTo(HaveOccurred())
			written := make(chan error, 1)
			go func() {
				_, err := conn.Write(sent)
				written <- err
			}()
			came := make([]byte, len(sent))
			Expect(io.ReadFull(conn, came)).To(Equal(len(sent)))
			Eventually(written).Should(Receive(BeNil()))
			Expect(bytes.Equal(came, sent)).To(BeTrue())
			Expect(conn.Close()).To(Succeed())
		}
	})

	It("does not begin with a pod that is gone", func(ctx SpecContext) {
		for _, command := range []string{"exec", "attach", "port-forward"} {
			args := map[string][]string{"exec": {"--", "true"}, "port-forward": {":7"}}[command]
			_, err := as.run(ctx, "", append([]string{command, "-n", talker.Namespace, "gone"}, args...)...)
			Expect(err).To(MatchError(ContainSubstring(`pods "gone" not found`)), command)
		}
	})
}

// spoken is what was said on a terminal, and how it ended.
type spoken struct {
	out string
	end error
}

// terminal types a line into a shell in the first container of a pod, on a
// terminal with 33 lines of 77 characters.
func terminal(ctx context.Context, config *rest.Config, p *corev1.Pod, line string) spoken {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	request := clients.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: p.Spec.Containers[0].Name, Command: []string{"sh"}, TTY: true, Stdin: true, Stdout: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	Expect(err).NotTo(HaveOccurred())
	// The end of what is typed would end the terminal, before it has said all.
	typed, in := io.Pipe()
	defer in.Close()
	go func() { _, _ = io.WriteString(in, line+"\n") }() // ends when it is read, or with the pipe
	var out bytes.Buffer
	end := executor.StreamWithContext(ctx, remotecommand.StreamOptions{
		Tty: true, Stdin: typed, Stdout: &out,
		TerminalSizeQueue: &size{remotecommand.TerminalSize{Width: 77, Height: 33}},
	})
	return spoken{out: out.String(), end: end}
}

// size is the size of a terminal, which is sent once.
type size []remotecommand.TerminalSize

// Next is the size, and then nothing.
func (s *size) Next() *remotecommand.TerminalSize {
	if len(*s) == 0 {
		return nil
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return &next
}
