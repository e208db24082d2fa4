package hosted_test

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const (
	soon  = 45 * time.Second
	later = 60 * time.Second
	tick  = 50 * time.Millisecond
)

// shared is the host of all tests that do not stop it, and sharedDir its directory.
var (
	shared    *hosted.Host
	sharedDir string
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	klog.OsExit = hosted.ContainExit(os.Exit)
	os.Exit(run(m))
}

func run(m *testing.M) int {
	SetDefaultEventuallyTimeout(soon)
	var err error
	sharedDir, err = os.MkdirTemp("", "hosted-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(sharedDir) }()
	if shared, err = hosted.Start(context.Background(), options(sharedDir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), later)
	defer cancel()
	if err := shared.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2) // what it waits for
		return 1
	}
	return code
}

func options(dir string) hosted.Options {
	return hosted.Options{Dir: dir, Log: logr.Discard(), Default: "super", Discovery: time.Second, UnsafeNoFsync: true}
}

// runReady runs a control plane on the host, waits for it to be ready and
// stops it at the end of the test.
func runReady(t *testing.T, host *hosted.Host, spec hosted.Spec) *hosted.ControlPlane {
	t.Helper()
	g := NewWithT(t)
	plane, err := host.Run(spec)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { stop(t, plane) })
	awaitReady(t, plane)
	return plane
}

func awaitReady(t *testing.T, plane *hosted.ControlPlane) {
	t.Helper()
	select {
	case <-plane.Ready():
	case <-plane.Done():
		t.Fatalf("%s ended before it was ready: %v", plane.Name(), plane.Err())
	case <-time.After(later):
		t.Fatalf("%s is not ready", plane.Name())
	}
}

func stop(t *testing.T, plane *hosted.ControlPlane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), later)
	defer cancel()
	if err := plane.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := plane.Err(); err != nil {
		t.Errorf("%s: %v", plane.Name(), err)
	}
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return client
}

func makeConfigMap(t *testing.T, client kubernetes.Interface, name, value string) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value},
	}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func configMapValue(t *testing.T, client kubernetes.Interface, name string) (string, error) {
	t.Helper()
	cm, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	return cm.Data["value"], err
}
