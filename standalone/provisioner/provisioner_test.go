package provisioner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/names"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

const later = time.Minute

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestLife takes one control plane from its start through a restart to its deletion.
func TestLife(t *testing.T) { //nolint:tparallel // its steps follow each other
	g := NewWithT(t)
	dir := t.TempDir()
	host, ways := start(t, dir)
	t.Parallel() // not before: a start of a host sets variables of the process
	vc := virtualCluster("red")

	state, err := ways.Ensure(t.Context(), vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Ready).To(BeFalse())
	g.Expect(state.Message).To(ContainSubstring("starting"))

	hear(t, ways, vc)
	state, err = ways.Ensure(t.Context(), vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Ready).To(BeTrue())
	g.Expect(state.Endpoint).To(HavePrefix("https://"))
	g.Expect(state.Version).NotTo(BeEmpty())
	uid := clusterUID(t, state.Kubeconfig)

	t.Run("a new value of the annotation restarts it", func(t *testing.T) {
		g := NewWithT(t)
		vc.Annotations = map[string]string{names.RestartedAt: "now"}
		again, err := ways.Ensure(t.Context(), vc)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Ready).To(BeFalse())
		again = untilReady(t, ways, vc)
		g.Expect(again.Kubeconfig).To(Equal(state.Kubeconfig))
		g.Expect(clusterUID(t, again.Kubeconfig)).To(Equal(uid), "its data stays")
	})
	t.Run("one that was stopped by others is started again", func(t *testing.T) {
		g := NewWithT(t)
		running, ok := host.Get(vc.Status.ClusterNamespace)
		g.Expect(ok).To(BeTrue())
		g.Expect(running.Stop(within(t))).To(Succeed())
		g.Expect(untilReady(t, ways, vc).Kubeconfig).To(Equal(state.Kubeconfig))
	})
	t.Run("deletion leaves nothing", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() (bool, error) { return ways.Delete(t.Context(), vc) }, later, "10ms").Should(BeTrue())
		g.Expect(filepath.Join(dir, "controlplanes", vc.Status.ClusterNamespace)).NotTo(BeAnExistingFile())
		g.Expect(ways.Delete(t.Context(), vc)).To(BeTrue(), "deleting again is no error")
	})
	t.Run("a recreated one has no data of the old", func(t *testing.T) {
		g := NewWithT(t)
		anew := untilReady(t, ways, vc)
		g.Expect(clusterUID(t, anew.Kubeconfig)).NotTo(Equal(uid))
		g.Eventually(func() (bool, error) { return ways.Delete(t.Context(), vc) }, later, "10ms").Should(BeTrue())
	})
}

func TestRefusesWhatItCannotDo(t *testing.T) {
	_, ways := start(t, t.TempDir())
	vc := virtualCluster("blue")
	vc.Spec.KubernetesVersion = "v1.2"
	_, err := ways.Ensure(t.Context(), vc)
	failure := contract.AsFailure(err)
	if failure == nil {
		t.Fatalf("got %v, want a failure", err)
	}
	NewWithT(t).Expect(failure.Reason).To(Equal(tenancyv1alpha1.ReasonUnsupportedVersion))
}

// start creates a provisioner on a host of its own, and checks at the end that
// both have stopped.
func start(t *testing.T, dir string) (*hosted.Host, *provisioner.Hosted) {
	t.Helper()
	g := NewWithT(t)
	host, err := hosted.Start(context.Background(), hosted.Options{Dir: dir, UnsafeNoFsync: true})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ways := provisioner.New(ctx, host, provisioner.Options{Network: func(string) egress.Network { return egress.Closed{} }})
	t.Cleanup(func() {
		cancel()
		ways.Wait()
		stopping, cancel := context.WithTimeout(context.Background(), later)
		defer cancel()
		if err := host.Stop(stopping); err != nil {
			t.Error(err)
		}
	})
	return host, ways
}

func virtualCluster(name string) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("uid-of-%s", name)),
	}}
	vc.Status.ClusterNamespace = names.ClusterKey(vc.Namespace, vc.Name, vc.UID)
	return vc
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), later)
	t.Cleanup(cancel)
	return ctx
}

// hear waits for an event of the VirtualCluster.
func hear(t *testing.T, ways *provisioner.Hosted, vc *tenancyv1alpha1.VirtualCluster) {
	t.Helper()
	select {
	case event := <-ways.Events():
		if event.Object.Name != vc.Name || event.Object.Namespace != vc.Namespace {
			t.Fatalf("heard of %s/%s", event.Object.Namespace, event.Object.Name)
		}
	case <-within(t).Done():
		t.Fatal("heard nothing")
	}
}

// untilReady ensures after each event until the control plane is ready, as the
// manager would.
func untilReady(t *testing.T, ways *provisioner.Hosted, vc *tenancyv1alpha1.VirtualCluster) contract.ControlPlane {
	t.Helper()
	for {
		state, err := ways.Ensure(t.Context(), vc)
		if err != nil {
			t.Fatal(err)
		}
		if state.Ready {
			return state
		}
		hear(t, ways, vc)
	}
}

// clusterUID tells one cluster's data from another's.
func clusterUID(t *testing.T, kubeconfig []byte) types.UID {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return namespace.UID
}
