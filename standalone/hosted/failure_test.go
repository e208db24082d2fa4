package hosted_test

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestAControlPlaneFailsAlone: whatever a part of a stock one does, its
// neighbors and the process continue, its server ends, and the error names the
// part.
func TestAControlPlaneFailsAlone(t *testing.T) {
	t.Parallel()
	neighbor := clientOf(t, runReady(t, shared, hosted.Spec{Name: "neighbor"}).RESTConfig())
	for name, test := range map[string]struct {
		build func(context.Context) (func(context.Context), error)
		want  string
	}{
		"cannot be built": {func(context.Context) (func(context.Context), error) { return nil, errors.New("no informer") },
			"build the controller faulty: no informer"},
		"panics": {func(context.Context) (func(context.Context), error) { panic("a nil map") }, "a nil map"},
		"gives up": {func(context.Context) (func(context.Context), error) {
			klog.OsExit(255) // as klog.Fatal does
			return nil, nil
		}, "gave up; see its log"},
		"ends by itself": {func(context.Context) (func(context.Context), error) { return func(context.Context) {}, nil },
			"the controller faulty exited by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			spec := hosted.Spec{Name: "faulty-" + strings.ReplaceAll(name, " ", "-"), Stock: true}
			spec.Controllers = append(hosted.TenantControllers(), hosted.NewController("faulty", test.build))
			plane, err := shared.Run(spec)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(plane.Err()).NotTo(HaveOccurred())
			g.Eventually(plane.Done()).WithTimeout(later).Should(BeClosed())
			g.Expect(plane.Err()).To(MatchError(And(ContainSubstring(test.want), ContainSubstring(spec.Name))))
			_, err = clientOf(t, plane.RESTConfig()).Discovery().ServerVersion()
			g.Expect(err).To(HaveOccurred(), "it still serves")
			_, err = neighbor.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// TestAControlPlaneWithoutControllers serves, if it is a stock one, but is not ready: no pod could run
// without a service account. It can be stopped while it waits.
func TestAControlPlaneWithoutControllers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane, err := shared.Run(hosted.Spec{Name: "idle", Stock: true, Controllers: []hosted.Controller{}})
	g.Expect(err).NotTo(HaveOccurred())
	client := clientOf(t, &rest.Config{
		Host: plane.Endpoint(), TLSClientConfig: rest.TLSClientConfig{ServerName: plane.ServerName(), Insecure: true},
	})
	g.Eventually(func() error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	}).WithTimeout(later).WithPolling(tick).Should(Succeed())
	g.Consistently(plane.Ready(), "300ms").ShouldNot(BeClosed())

	expired, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(plane.Stop(expired)).To(MatchError(ContainSubstring(`control plane "idle" is still stopping`)))
	stop(t, plane)
	g.Expect(plane.Ready()).NotTo(BeClosed())
}

// TestClientsOfAStoppedControlPlane: they are turned away at once, and the same
// client works again when it runs again.
func TestClientsOfAStoppedControlPlane(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "pausing"})
	client := clientOf(t, plane.RESTConfig())
	makeConfigMap(t, client, "data", "kept")
	running, ok := shared.Get("pausing")
	g.Expect(ok).To(BeTrue())
	g.Expect(running).To(BeIdenticalTo(plane))

	stop(t, plane)
	_, ok = shared.Get("pausing")
	g.Expect(ok).To(BeFalse())
	hurried, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: plane.ServerName(), InsecureSkipVerify: true}}
	_, err := dialer.DialContext(hurried, "tcp", shared.Address())
	g.Expect(err).To(HaveOccurred())
	g.Expect(hurried.Err()).NotTo(HaveOccurred(), "the connection is left open")

	// A request during the start waits for it.
	again, err := shared.Run(hosted.Spec{Name: "pausing"})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { stop(t, again) })
	g.Eventually(func() (string, error) { return configMapValue(t, client, "data") }).WithTimeout(later).Should(Equal("kept"))
	awaitReady(t, again)
}

// TestMetricsOfAHost: two hosts cannot share a registry, and the second start of
// one host can use the registry of the first.
func TestMetricsOfAHost(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	opts := options(t.TempDir())
	opts.Metrics = registry
	for range 2 {
		host, err := hosted.Start(t.Context(), opts)
		g.Expect(err).NotTo(HaveOccurred())
		second := options(t.TempDir())
		second.Metrics = registry
		_, err = hosted.Start(t.Context(), second)
		g.Expect(err).To(MatchError(ContainSubstring("register metrics")))
		second.Metrics = nil
		other, err := hosted.Start(t.Context(), second)
		g.Expect(err).NotTo(HaveOccurred(), "the failed start has left its data locked")
		stopHost(t, other)
		stopHost(t, host)
	}
}
