package integration

import (
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A HostedControlPlane that has lost its status, as one from a backup", Label("long"), Ordered, func() {
	var (
		super   *kit.Site
		second  *gexec.Session
		replica *kit.HostReplica
		red     *movedTenant
		writing *writer
	)

	stopReplica := func() {
		GinkgoHelper()
		super.Service.Remove(replica.Address)
		replica.Kill().Wait(kit.Soon)
	}
	// loseStatus deletes the object without its data. vc-manager creates it again, as
	// a backup does.
	loseStatus := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(kit.Get(ctx, super.Client, red.plane)).To(Succeed())
		lost := red.plane.DeepCopy()
		Expect(super.Client.Delete(ctx, lost)).To(Succeed())
		Eventually(func() (types.UID, error) {
			if err := kit.Get(ctx, super.Client, red.plane); err != nil {
				return lost.UID, client.IgnoreNotFound(err)
			}
			if red.plane.UID == lost.UID {
				before := red.plane.DeepCopy()
				red.plane.Finalizers = nil
				return lost.UID, client.IgnoreNotFound(super.Client.Patch(ctx, red.plane, client.MergeFrom(before)))
			}
			return red.plane.UID, nil
		}).WithTimeout(moveTime).ShouldNot(Equal(lost.UID))
		Expect(red.plane.Status.Store).To(BeEmpty())
	}
	// serves checks that the control plane has all data, in a store.
	serves := func(ctx SpecContext, store string) {
		GinkgoHelper()
		red.arrives(ctx, store)
		acknowledged := writing.written()
		Eventually(writing.written).WithTimeout(moveTime).Should(BeNumerically(">", acknowledged+10))
		writing.check(ctx, red.client)
	}

	BeforeAll(func(ctx SpecContext) {
		super = kit.StartSite(ctx)
		replica = super.StartReplica(ctx, "host-a")
		red = newMovedTenant(ctx, super)
		second = super.AddStore(ctx, "second")
		fillTenant(ctx, red.client, 20)
	}, NodeTimeout(20*time.Minute))

	BeforeEach(func(ctx SpecContext) {
		writing = startWriter(ctx, red.client, "w"+red.plane.ResourceVersion)
		DeferCleanup(writing.stop)
		Eventually(writing.written).WithTimeout(moveTime).Should(BeNumerically(">", 10))
	})

	It("has its data before a move, and is moved then", func(ctx SpecContext) {
		stopReplica()
		red.ask(ctx, "second")
		Eventually(kit.Read(ctx, super.Client, red.plane)).WithTimeout(moveTime).Should(HaveField("Spec.Store", "second"))
		loseStatus(ctx)
		replica = super.StartReplica(ctx, "host-b")
		serves(ctx, "second")
	}, SpecTimeout(20*time.Minute))

	It("has its data when it is older than the move", func(ctx SpecContext) {
		stopReplica()
		red.ask(ctx, "default")
		loseStatus(ctx)
		replica = super.StartReplica(ctx, "host-c")
		serves(ctx, "default")
	}, SpecTimeout(20*time.Minute))

	It("waits for a store that can have its data, and then has the data", func(ctx SpecContext) {
		DeferCleanup(func() { second.Signal(syscall.SIGCONT) })
		red.ask(ctx, "second")
		red.arrives(ctx, "second")
		stopReplica()
		second.Signal(syscall.SIGSTOP)
		loseStatus(ctx)
		replica = super.StartReplica(ctx, "host-d")
		Eventually(kit.Read(ctx, super.Client, red.vc)).WithTimeout(moveTime).Should(kit.HaveCondition(
			tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonStoreUnreachable))
		second.Signal(syscall.SIGCONT)
		serves(ctx, "second")
	}, SpecTimeout(20*time.Minute))
})
