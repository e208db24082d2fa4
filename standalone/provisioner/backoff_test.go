package provisioner

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	testingclock "k8s.io/utils/clock/testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestControlPlaneThatEndsByItself tests that the error of an apiserver that
// gives up is reported until its backoff has passed, and that it is then
// restarted.
func TestControlPlaneThatEndsByItself(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := t.TempDir()
	host, err := hosted.Start(ctx, hosted.Options{Dir: dir, UnsafeNoFsync: true})
	g.Expect(err).NotTo(HaveOccurred())
	clock := testingclock.NewFakeClock(time.Now())
	h := New(ctx, host, Options{Network: func(string) egress.Network { return egress.Closed{} }})
	h.backoff = flowcontrol.NewFakeBackOff(firstBackoff, lastBackoff, clock)
	defer func() {
		cancel()
		h.Wait()
		<-host.Done()
	}()

	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	vc.Status.ClusterNamespace = "default-0-red"
	breakVerifyingKey(t, filepath.Join(dir, "controlplanes", vc.Status.ClusterNamespace, "pki"))
	broken, err := host.Run(hosted.Spec{Name: vc.Status.ClusterNamespace, Stock: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(broken.Done(), time.Minute).Should(BeClosed())
	h.mu.Lock() // limits are watched meanwhile
	h.planes[vc.Status.ClusterNamespace] = &plane{ControlPlane: broken}
	h.mu.Unlock()

	for range 3 {
		_, err = h.Ensure(ctx, vc)
		g.Expect(err).To(MatchError(broken.Err()))
	}
	clock.Step(2 * firstBackoff)
	state, err := h.Ensure(ctx, vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Message).To(ContainSubstring("starting"))
}

// breakVerifyingKey leaves a key that a stock apiserver cannot start with.
func breakVerifyingKey(t *testing.T, pki string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(pki, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(pki, "sa.pub"), []byte("broken"), 0o600)).To(Succeed())
}
