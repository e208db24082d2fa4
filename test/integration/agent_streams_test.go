package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// nodeOf creates a node of the super cluster that has this kubelet.
func nodeOf(ctx context.Context, kubelet *local.Kubelet) *corev1.Node {
	GinkgoHelper()
	node := bareNode(ctx)
	was := node.DeepCopy()
	kubelet.Describe(&node.Status)
	Expect(super.Client.Status().Patch(ctx, node, client.MergeFrom(was))).To(Succeed())
	return node
}

// clientset returns a tenant admin's client with support for logs.
func clientset(t *local.Tenant) kubernetes.Interface {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(t.Config)
	Expect(err).NotTo(HaveOccurred())
	return clients
}

// logs reads the logs of a tenant's pod, as kubectl does.
func logs(ctx context.Context, t *local.Tenant, pod string, options *corev1.PodLogOptions) (string, error) {
	GinkgoHelper()
	stream, err := clientset(t).CoreV1().Pods(agentNamespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

type newExecutor func(config *rest.Config, method string, location *url.URL) (remotecommand.Executor, error)

// protocol is a protocol of clients for streams.
type protocol struct {
	name     string
	executor newExecutor
}

// protocols returns the protocols of older and current kubectl, and that of
// browsers, which no apiserver translates.
func protocols() []protocol {
	return []protocol{
		{"SPDY", remotecommand.NewSPDYExecutor},
		{"WebSocket", func(config *rest.Config, _ string, location *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(config, http.MethodGet, location.String())
		}},
		{"an older WebSocket", func(config *rest.Config, _ string, location *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, location.String(), "v4.channel.k8s.io")
		}},
	}
}

// said is the output of a command.
type said struct {
	out, err string
	failure  error
}

// run runs a command in a tenant's pod.
func run(ctx context.Context, t *local.Tenant, pod string, executor newExecutor, input string, command ...string) said {
	GinkgoHelper()
	request := clientset(t).CoreV1().RESTClient().Post().Namespace(agentNamespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Stdin: input != "", Stdout: true, Stderr: true, Command: command}, scheme.ParameterCodec)
	e, err := executor(t.Config, http.MethodPost, request.URL())
	Expect(err).NotTo(HaveOccurred())
	var out, errs bytes.Buffer
	options := remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}
	if input != "" {
		options.Stdin = strings.NewReader(input)
	}
	failure := e.StreamWithContext(ctx, options)
	return said{out: out.String(), err: errs.String(), failure: failure}
}

// forward forwards a port of a tenant's pod, as kubectl does. It returns the
// local address, and a function that stops it.
func forward(t *local.Tenant, pod string, port int) (address string, end func()) {
	GinkgoHelper()
	transport, upgrader, err := spdy.RoundTripperFor(t.Config)
	Expect(err).NotTo(HaveOccurred())
	location := clientset(t).CoreV1().RESTClient().Post().Namespace(agentNamespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, location)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	Expect(err).NotTo(HaveOccurred())
	go func() { ended <- forwarder.ForwardPorts() }()
	Eventually(ready).Should(BeClosed())
	ports, err := forwarder.GetPorts()
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() {
		GinkgoHelper()
		close(stop)
		Eventually(ended).Should(Receive(BeNil()))
	}
}
