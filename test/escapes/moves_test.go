package escapes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// The platform copies the data of a tenant, which the tenant chooses, into an etcd
// that has the data of others. The tenant knows when, as its watches end.
var _ = Describe("Moves to another store", Ordered, func() {
	const (
		later = 6 * kit.Soon
		// downtime bounds how long others wait for a move, and the tenant itself.
		downtime = kit.Soon
	)
	var (
		site                    *kit.Site
		mallory, alice, bob     *kit.SiteTenant
		ofMallory, ofAlice, one kubernetes.Interface
	)
	clientOf := func(config *rest.Config) kubernetes.Interface {
		GinkgoHelper()
		c, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	// move moves the data of a tenant to the store that it is not in, and waits for the
	// end.
	move := func(ctx context.Context, t *kit.SiteTenant) {
		GinkgoHelper()
		Expect(kit.Get(ctx, site.Client, t.Plane)).To(Succeed())
		to := "second"
		if t.Plane.Status.Store == to {
			to = "default"
		}
		kit.Edit(ctx, site.Client, t.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: to}
		})
		Eventually(kit.Read(ctx, site.Client, t.Plane)).WithTimeout(4 * later).WithPolling(50 * time.Millisecond).Should(And(
			HaveField("Status.Store", to), HaveField("Status.Move", BeNil())))
	}
	// othersGetOn moves the tenant, and meanwhile another one, and asserts that those
	// in both stores that are not moved do not notice it.
	othersGetOn := func(ctx context.Context) {
		GinkgoHelper()
		listing := kit.StartLister(ctx, ofAlice)
		DeferCleanup(listing.Stop)
		var moving sync.WaitGroup
		moving.Go(func() {
			defer GinkgoRecover()
			move(ctx, mallory)
		})
		move(ctx, bob)
		moving.Wait()
		listing.Stop()
		Expect(listing.Failures()).To(BeEmpty())
		Expect(listing.Gap()).To(BeNumerically("<", downtime))
		_, err := ofMallory.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		found, err := ofAlice.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "of=mallory"})
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Items).To(BeEmpty())
	}

	BeforeAll(func(ctx SpecContext) {
		site = kit.StartSite(ctx)
		for _, name := range []string{"host-a", "host-b"} {
			site.StartReplica(ctx, name)
		}
		inDefault := func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: "default"}
		}
		mallory, bob = site.NewTenant(ctx, inDefault), site.NewTenant(ctx, inDefault)
		site.AddStore(ctx, "second")
		alice = site.NewTenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: "second"}
		})
		ofMallory, ofAlice, one = clientOf(mallory.Config), clientOf(alice.Config), clientOf(bob.Config)
		_, err := one.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(kit.Longest))

	attack("writes of large objects, as fast as they are accepted, while the data is copied", "idea: a copy that never catches up", func(ctx SpecContext) {
		const writers = 16
		flooding, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		DeferCleanup(func() {
			stop()
			work.Wait()
		})
		var written atomic.Int64
		for i := range writers {
			work.Go(func() {
				for n := 0; flooding.Err() == nil; n++ {
					object := &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("flood-%d-%d", i, n), Labels: map[string]string{"of": "mallory"}},
						Data:       map[string]string{"data": strings.Repeat("x", 100<<10)},
					}
					if _, err := ofMallory.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(flooding, object, metav1.CreateOptions{}); err == nil {
						written.Add(1)
					} else {
						time.Sleep(10 * time.Millisecond) // its limit is reached
					}
				}
			})
		}
		Eventually(written.Load).WithTimeout(later).Should(BeNumerically(">", 10))
		othersGetOn(ctx)
		_, err := one.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(kit.Longest))

	attack("watches and requests that do not end, while the control plane is to stop", "idea: a drain that waits for its clients", func(ctx SpecContext) {
		const number = 500
		now, err := ofMallory.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{Limit: 1})
		Expect(err).NotTo(HaveOccurred())
		// From now on, since few at a time are sent the objects that exist.
		watches := unreadWatches(ctx, mallory.Config, "/api/v1/configmaps?watch=true&resourceVersion="+now.ResourceVersion, number)
		Eventually(watches.open.Load).WithTimeout(later).Should(BeNumerically(">", number/4))
		begun := time.Now()
		othersGetOn(ctx)
		Expect(time.Since(begun)).To(BeNumerically("<", 2*later))
	}, SpecTimeout(kit.Longest))

	attack("objects whose names look like keys of others, which are copied", "review: keys of the store end with what a tenant calls its objects", func(ctx SpecContext) {
		names := []string{
			"system:" + alice.Plane.Namespace, alice.Plane.Namespace + "0", "..." + alice.Plane.Namespace, "a b\u202e", "sealed:moves", strings.Repeat("n", 1000),
		}
		for _, name := range names {
			_, err := ofMallory.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred(), name)
		}
		before, err := ofAlice.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		othersGetOn(ctx)
		after, err := ofAlice.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Items).To(HaveLen(len(before.Items)))
		for _, name := range names {
			_, err := ofMallory.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred(), name)
		}
	}, SpecTimeout(kit.Longest))
})
