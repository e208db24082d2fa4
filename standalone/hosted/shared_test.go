package hosted_test

import (
	"context"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestASharedTenantWorks does with two tenants of the shared chain at once, with
// equal names, what a tenant with a chain of its own does.
func TestASharedTenantWorks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"share", "share-b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plane := runReady(t, shared, hosted.Spec{Name: name, Shared: true})
			client := clientOf(t, plane.RESTConfig())
			t.Run("a deployment becomes pods", func(t *testing.T) { deploymentBecomesPods(t, client) })
			t.Run("a namespace goes away", func(t *testing.T) { namespaceGoesAway(t, client) })
			t.Run("a service account's token works", func(t *testing.T) { tokenWorks(t, client, plane) })
			t.Run("a claim is bound", func(t *testing.T) { claimIsBound(t, client) })
			t.Run("a quota counts", func(t *testing.T) { quotaCounts(t, client) })
			t.Run("a certificate is signed", func(t *testing.T) { certificateIsSigned(t, client, plane) })
			t.Run("a certificate is for clients", func(t *testing.T) { certificateIsForClients(t, client) })
			t.Run("custom resources are collected", func(t *testing.T) { customResourcesAreCollected(t, client, plane) })
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

// TestSharedControlPlanesAreApart: the credentials of one tenant are none in
// another, whatever it shares.
func TestSharedControlPlanesAreApart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	a := runReady(t, shared, hosted.Spec{Name: "apart", Shared: true})
	b := runReady(t, shared, hosted.Spec{Name: "apart-b", Shared: true})
	own := runReady(t, shared, hosted.Spec{Name: "apart-c"})
	clientA, clientB := clientOf(t, a.RESTConfig()), clientOf(t, b.RESTConfig())
	makeConfigMap(t, clientA, "same", "of a")
	makeConfigMap(t, clientB, "same", "of b")
	g.Expect(configMapValue(t, clientA, "same")).To(Equal("of a"))
	g.Expect(configMapValue(t, clientB, "same")).To(Equal("of b"))
	_, err := configMapValue(t, clientOf(t, own.RESTConfig()), "same")
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))
	for _, other := range []*hosted.ControlPlane{b, own} {
		intruder := other.RESTConfig()
		intruder.CertData, intruder.KeyData = a.RESTConfig().CertData, a.RESTConfig().KeyData
		_, err = configMapValue(t, clientOf(t, intruder), "same")
		g.Expect(err).To(Satisfy(apierrors.IsUnauthorized))
	}
	misled := a.RESTConfig()
	misled.ServerName = b.ServerName()
	_, err = configMapValue(t, clientOf(t, misled), "same")
	g.Expect(err).To(MatchError(ContainSubstring("unknown authority")))
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
