package hosted_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestATenantWorks does the same at once, with equal names, in two tenants of the
// shared chain and in two tenants with chains of their own.
func TestATenantWorks(t *testing.T) {
	t.Parallel()
	for name, isShared := range map[string]bool{"share": true, "share-b": true, "own": false, "own-b": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plane := runReady(t, shared, hosted.Spec{Name: name, Shared: isShared})
			client := clientOf(t, plane.RESTConfig())
			t.Run("a deployment becomes pods", func(t *testing.T) { deploymentBecomesPods(t, client) })
			t.Run("a namespace goes away", func(t *testing.T) { namespaceGoesAway(t, client) })
			t.Run("a service account's token works", func(t *testing.T) { tokenWorks(t, client, plane) })
			t.Run("Endpoints without a Service stay", func(t *testing.T) { endpointsStay(t, client) })
			t.Run("a claim is bound", func(t *testing.T) { claimIsBound(t, client) })
			t.Run("a quota counts", func(t *testing.T) { quotaCounts(t, client) })
			t.Run("a certificate is signed", func(t *testing.T) { certificateIsSigned(t, client, plane) })
			t.Run("a certificate is for clients", func(t *testing.T) { certificateIsForClients(t, client) })
			t.Run("custom resources are collected", func(t *testing.T) { customResourcesAreCollected(t, client, plane) })
		})
	}
}

// TestPrepareShared: the chain exists before a control plane needs it, with the
// objects of a new cluster, and only if it is to.
func TestPrepareShared(t *testing.T) {
	t.Parallel()
	for name, prepared := range map[string]bool{"prepared": true, "not prepared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			opts := options(t.TempDir())
			opts.PrepareShared = prepared
			host, err := hosted.Start(t.Context(), opts)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { g.Expect(host.Stop(context.Background())).To(Succeed()) })
			kv := hosted.TenantsKV(host)
			if !prepared {
				g.Consistently(kv.Rev, time.Second).Should(BeEquivalentTo(1))
				g.Expect(hosted.SharesChain(host)).To(BeFalse())
				return
			}
			g.Eventually(func() bool { return hosted.SharesChain(host) }, later).Should(BeTrue())
			g.Eventually(kv.Rev, later).Should(BeNumerically(">", 100), "objects of a new cluster were written")
			plane := runReady(t, host, hosted.Spec{Name: "first", Shared: true})
			g.Expect(plane.Done()).NotTo(BeClosed())
		})
	}
}

// TestAControllerOfASharedControlPlaneThatGivesUp ends alone, and starts again.
func TestAControllerOfASharedControlPlaneThatGivesUp(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var starts atomic.Int32
	faulty := hosted.NewController("faulty", func(context.Context) (func(context.Context), error) {
		if starts.Add(1) == 1 {
			klog.OsExit(255) // as klog.Fatal does
		}
		return func(ctx context.Context) { <-ctx.Done() }, nil
	})
	plane := runReady(t, shared, hosted.Spec{Name: "gives-up", Shared: true, Controllers: append(hosted.TenantControllers(), faulty)})
	g.Eventually(starts.Load).WithTimeout(later).Should(BeEquivalentTo(2))
	g.Expect(plane.Done()).NotTo(BeClosed())
	t.Run("a deployment becomes pods", func(t *testing.T) { deploymentBecomesPods(t, clientOf(t, plane.RESTConfig())) })
}

// endpointsStay creates Endpoints, and then the first Service, which starts the
// controller of endpoints.
func endpointsStay(t *testing.T, client kubernetes.Interface) {
	t.Parallel()
	g := NewWithT(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "manual"}}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Endpoints("manual").Create(t.Context(), &corev1.Endpoints{ //nolint:staticcheck // users still write them
		ObjectMeta: metav1.ObjectMeta{Name: "external"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}}}, //nolint:staticcheck // as above
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	_, err = client.CoreV1().Services("manual").Create(t.Context(), service, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := client.CoreV1().Endpoints("manual").Get(t.Context(), "other", metav1.GetOptions{})
		return err
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed(), "the controller runs")
	g.Consistently(func() error {
		_, err := client.CoreV1().Endpoints("manual").Get(t.Context(), "external", metav1.GetOptions{})
		return err
	}).WithTimeout(2 * time.Second).WithPolling(tick).Should(Succeed())
}

// TestSharedControlPlanesAreApart: the credentials of one tenant are none in
// another, whatever it shares.
func TestSharedControlPlanesAreApart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	a := runReady(t, shared, hosted.Spec{Name: "apart", Shared: true})
	b := runReady(t, shared, hosted.Spec{Name: "apart-b", Shared: true})
	own := runReady(t, shared, hosted.Spec{Name: "apart-c"})
	shouldBeApart(t, a, b)
	_, err := configMapValue(t, clientOf(t, own.RESTConfig()), "same")
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))
	shouldReject(t, own, a)
}

// TestIsolationCanChange: a tenant moves between a chain of its own and the
// shared one, with its data and credentials.
func TestIsolationCanChange(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	first := runReady(t, shared, hosted.Spec{Name: "moved"})
	makeConfigMap(t, clientOf(t, first.RESTConfig()), "kept", "yes")
	uid := namespaceUID(t, first)
	stop(t, first)
	for _, isShared := range []bool{true, true, false} {
		plane := runReady(t, shared, hosted.Spec{Name: "moved", Shared: isShared})
		g.Expect(plane.CA()).To(Equal(first.CA()))
		g.Expect(namespaceUID(t, plane)).To(Equal(uid))
		g.Expect(configMapValue(t, clientOf(t, plane.RESTConfig()), "kept")).To(Equal("yes"))
		stop(t, plane)
	}
}

func namespaceUID(t *testing.T, plane *hosted.ControlPlane) string {
	t.Helper()
	found, err := clientOf(t, plane.RESTConfig()).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(found.UID)
}
