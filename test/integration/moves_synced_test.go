package integration

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A tenant with a syncer that is moved to another store", Ordered, func() {
	const ns, idleSeconds = "team", 10
	var (
		super      *kit.Site
		superKinds kubernetes.Interface
		red        *movedTenant
	)
	// copyOf gets the copy of a pod.
	copyOf := func(ctx context.Context, name string) (*corev1.Pod, error) {
		return superKinds.CoreV1().Pods(names.SuperNamespace(red.plane.Namespace, ns)).Get(ctx, name, metav1.GetOptions{})
	}
	// runs returns the UID of the copy of a pod that the tenant sees running.
	runs := func(ctx context.Context, name string) types.UID {
		GinkgoHelper()
		Eventually(func() (corev1.PodPhase, error) {
			pod, err := red.client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return pod.Status.Phase, nil
		}).WithTimeout(moveTime).Should(Equal(corev1.PodRunning))
		found, err := copyOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		return found.UID
	}
	create := func(ctx context.Context, name string) types.UID {
		GinkgoHelper()
		Eventually(func() error { // when the namespace has its service account
			_, err := red.client.CoreV1().Pods(ns).Create(ctx, kit.Pod(ns, name), metav1.CreateOptions{})
			return err
		}).Should(Succeed())
		return runs(ctx, name)
	}

	BeforeAll(func(ctx SpecContext) {
		super = kit.StartSite(ctx)
		superKinds = must(kubernetes.NewForConfig(super.Config))
		account, err := super.SyncerConfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		syncer := local.StartSyncer(account, logger)
		DeferCleanup(func() { Expect(syncer.Stop()).To(Succeed()) })
		super.StartReplica(ctx, "host-a", "--pod-address="+kit.MachineAddress())
		red = newMovedTenant(ctx, super)
		super.AddStore(ctx, "second")
		_, err = red.client.CoreV1().Namespaces().Create(ctx, kit.Namespace(ns), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(kit.Longest))

	It("keeps its copies, and is synced on", func(ctx SpecContext) {
		before := create(ctx, "before")
		watching, err := superKinds.CoreV1().Pods(names.SuperNamespace(red.plane.Namespace, ns)).Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		var deleted []string
		var followed sync.WaitGroup
		followed.Go(func() {
			for each := range watching.ResultChan() {
				if pod, ok := each.Object.(*corev1.Pod); ok && each.Type == watch.Deleted {
					deleted = append(deleted, pod.Name)
				}
			}
		})
		red.ask(ctx, "second")
		red.arrives(ctx, "second")
		create(ctx, "after")
		Expect(runs(ctx, "before")).To(Equal(before))

		By("syncing the status and deletions")
		Expect(red.client.CoreV1().Pods(ns).Delete(ctx, "after", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() ([]corev1.Pod, error) {
			left, err := superKinds.CoreV1().Pods(names.SuperNamespace(red.plane.Namespace, ns)).List(ctx, metav1.ListOptions{})
			return left.Items, err
		}).WithTimeout(moveTime).Should(HaveLen(1))
		watching.Stop()
		followed.Wait()
		Expect(deleted).NotTo(ContainElement("before"))
	}, SpecTimeout(kit.Longest))

	It("sleeps on when it is moved, and wakes with its data", func(ctx SpecContext) {
		_, err := red.client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		kit.Edit(ctx, super.Client, red.vc, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane.Sleep = &tenancyv1alpha1.SleepSpec{AfterIdleSeconds: new(int32(idleSeconds))}
		})
		asleep := kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse, tenancyv1alpha1.ReasonIdle)
		Eventually(kit.Read(ctx, super.Client, red.vc)).WithTimeout(2 * moveTime).Should(asleep)
		red.ask(ctx, "default")
		Eventually(kit.Read(ctx, super.Client, red.plane)).WithTimeout(2 * moveTime).Should(And(
			HaveField("Status.Store", "default"), HaveField("Status.Move", BeNil())))
		Consistently(kit.Read(ctx, super.Client, red.vc), "3s").Should(asleep)
		_, err = red.client.CoreV1().ConfigMaps(ns).Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred(), "the request wakes it")
		runs(ctx, "before")
	}, SpecTimeout(kit.Longest))
})
