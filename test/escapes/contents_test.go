package escapes

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	hoarded = "hoard" // the namespace
	// hoard is how many large objects a tenant stores, and large about the most
	// that one may hold.
	hoard = 48
	large = 1000 << 10
	// slack is how far the syncer's live heap may move for other reasons. It is
	// a sixth of what is hoarded.
	slack = 8 << 20
)

var _ = Describe("The syncer's memory", Ordered, ContinueOnFailure, func() {
	const ns = hoarded
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		shouldBeServed(ctx, mallory, "first")
	})

	attack("ConfigMaps of a megabyte each that nothing refers to", "review: 690 of them ended the process of all control planes",
		func(ctx SpecContext) {
			before, sent := liveHeap(), requests()
			for i := range hoard {
				kit.Create(ctx, mallory.Client, configMap(ns, fmt.Sprint("large-", i), large))
			}
			shouldBeServed(ctx, mallory, "after-config-maps")
			shouldBeFlat(before)
			// That of the pod that came last, and not one of the others. It is read again if its own event comes after the pod's.
			Expect(requests().Since(sent)).To(HaveKeyWithValue("tenant get configmaps", BeNumerically("<=", 2)))
		})

	attack("Secrets of a megabyte each that nothing refers to", "review: the same by another kind", func(ctx SpecContext) {
		before, sent := liveHeap(), requests()
		for i := range hoard {
			kit.Create(ctx, mallory.Client, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("large-", i)}, Data: map[string][]byte{"x": []byte(filler(large))},
			})
		}
		shouldBeServed(ctx, mallory, "after-secrets")
		shouldBeFlat(before)
		Expect(requests().Since(sent)).NotTo(HaveKey("tenant get secrets"))
	})

	attack("metadata as large as it may be, on objects that nothing refers to", "idea: what is watched by metadata alone has metadata",
		func(ctx SpecContext) {
			before := liveHeap()
			for i := range 2 * hoard {
				bomb := configMap(ns, fmt.Sprint("bomb-", i), 0)
				bomb.Annotations = map[string]string{
					corev1.LastAppliedConfigAnnotation: filler(125 << 10), "tenancy.x-k8s.io/uid": filler(125 << 10),
				}
				bomb.Labels = map[string]string{}
				for n := range 1000 {
					bomb.Labels[fmt.Sprintf("example.com/label-%04d", n)] = filler(63)
					bomb.Finalizers = append(bomb.Finalizers, fmt.Sprintf("example.com/finalizer-%04d", n))
				}
				kit.Create(ctx, mallory.Client, bomb)
			}
			shouldBeServed(ctx, mallory, "after-metadata")
			shouldBeFlat(before)
		})

	attack("a megabyte to which pods refer and soon no more, again and again", "idea: references that come and go", func(ctx SpecContext) {
		const times = 10
		kit.Create(ctx, mallory.Client, configMap(ns, "flip-flop", large))
		before, sent := liveHeap(), requests()
		for i := range times {
			p := kit.Pod(ns, fmt.Sprint("flip-flop-", i), mounting("flip-flop"))
			kit.Create(ctx, mallory.Client, p)
			copied := configMap(mallory.Super(ns), "flip-flop", 0)
			kit.ShouldExist(ctx, super.Client, copied)
			Expect(mallory.Client.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
			Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, copied).ShouldNot(Succeed())
		}
		shouldBeFlat(before)
		// Each time it is read once and its copy made: other tenants wait for
		// no more than that.
		Expect(requests().Since(sent)["tenant get configmaps"]).To(BeNumerically("<=", times))
	})

	attack("all megabytes referred to at once", "idea: contents of copies are in no cache either", func(ctx SpecContext) {
		before := liveHeap()
		p := kit.Pod(ns, "all")
		for i := range hoard {
			mounting(fmt.Sprint("large-", i))(p)
		}
		kit.Create(ctx, mallory.Client, p)
		for i := range hoard {
			kit.ShouldExist(ctx, super.Client, configMap(mallory.Super(ns), fmt.Sprint("large-", i), 0))
		}
		shouldBeServed(ctx, mallory, "after-all")
		shouldBeFlat(before)
	})
})

// shouldBeServed asserts that a tenant's new pod is synced down with the
// ConfigMap that it refers to. The syncer has seen then what the tenant stored
// before.
func shouldBeServed(ctx context.Context, t *local.Tenant, name string) {
	GinkgoHelper()
	const ns = hoarded
	c, p := configMap(ns, name, 1), kit.Pod(ns, name, mounting(name))
	kit.Create(ctx, t.Client, c, p)
	copied := kit.SuperOf(t, c)
	kit.ShouldExist(ctx, super.Client, copied)
	Expect(copied.Data).To(Equal(c.Data))
	kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, p))
}

// configMap returns a ConfigMap with a number of bytes.
func configMap(ns, name string, bytes int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{"x": filler(bytes)}}
}

// mounting returns a change by which a pod mounts a ConfigMap.
func mounting(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}})
	}
}

func filler(bytes int) string { return strings.Repeat("x", bytes) }

// liveHeap is what this process holds in memory, of which the syncer is a part,
// without garbage.
func liveHeap() uint64 {
	// The first collection unlinks what weak pointers and finalizers held.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// shouldBeFlat asserts that the live heap has not grown by what a tenant
// hoards, except for what workers hold at the moment.
func shouldBeFlat(before uint64) {
	GinkgoHelper()
	var now uint64
	Eventually(func() uint64 {
		now = liveHeap()
		return now
	}).WithPolling(kit.Quiet).Should(BeNumerically("<", before+slack))
	AddReportEntry("live heap in KiB, before and now", fmt.Sprint(before>>10, " ", now>>10))
}

// requests are those that the syncer has sent so far.
func requests() local.Requests {
	GinkgoHelper()
	sent, err := syncer.Requests()
	Expect(err).NotTo(HaveOccurred())
	return sent
}
