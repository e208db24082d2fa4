package escapes

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What is read of a tenant when it is needed", Ordered, ContinueOnFailure, func() {
	const ns = "moods"
	var (
		mallory *local.Tenant
		hostile *local.Hostile
	)

	BeforeAll(func(ctx SpecContext) {
		mallory, hostile = hostileTenant(ctx)
		create(ctx, mallory.Client, namespace(ns))
	})

	attack("a ConfigMap that is another state at each read", "our own: what is newer than the watch is read again", func(ctx SpecContext) {
		var reads atomic.Int64
		answering(hostile, reading("configmaps/moody"), local.Rewrite(func(answer map[string]any) {
			n := reads.Add(1)
			answer["data"] = map[string]any{"x": fmt.Sprint(n)}
			metadataOf(answer)["resourceVersion"] = fmt.Sprint(1_000_000_000 + n)
		}))
		c, p := configMap(ns, "moody", 1), pod(ns, "moody", mounting("moody"))
		create(ctx, mallory.Client, c, p)
		shouldExist(ctx, super.Client, superOf(mallory, c))
		shouldExist(ctx, super.Client, superOf(mallory, p))
		// Events of both objects lead to a few reads. A newer answer is no reason to read again, nor is a round of the patrol: it ends.
		Eventually(func(g Gomega) {
			g.Consistently(reads.Load, quiet).Should(Equal(reads.Load()))
		}).WithContext(ctx).Should(Succeed())
		settled := reads.Load()
		Expect(settled).To(BeNumerically("<", 10))
		Consistently(reads.Load, 2*patrol).Should(Equal(settled))
	})

	attack("a read that is answered with an object of another name", "our own: the copy would be another object's", func(ctx SpecContext) {
		undo := hostile.On(reading("configmaps/asked"), local.Rewrite(func(answer map[string]any) {
			metadataOf(answer)["name"], metadataOf(answer)["namespace"] = "answered", "default"
		}))
		c, p := configMap(ns, "asked", 1), pod(ns, "asked", mounting("asked"))
		create(ctx, mallory.Client, c, p)
		shouldExist(ctx, super.Client, superOf(mallory, p))
		shouldStayAbsent(ctx, super.Client, superOf(mallory, c))
		Expect(hostile.Seen(reading("configmaps/asked"))).To(BeNumerically(">", 0))
		undo()
		shouldExist(ctx, super.Client, superOf(mallory, c))
	})

	attack("a read that is answered with an older state than the watch has shown", "our own: a Secret that was withdrawn comes back",
		func(ctx SpecContext) {
			undo := hostile.On(reading("configmaps/old"), local.Rewrite(func(answer map[string]any) {
				metadataOf(answer)["resourceVersion"] = "1"
			}))
			c, p := configMap(ns, "old", 1), pod(ns, "old", mounting("old"))
			create(ctx, mallory.Client, c, p)
			shouldExist(ctx, super.Client, superOf(mallory, p))
			shouldStayAbsent(ctx, super.Client, superOf(mallory, c))
			Expect(hostile.Seen(reading("configmaps/old"))).To(BeNumerically(">", 0))
			undo()
			shouldExist(ctx, super.Client, superOf(mallory, c))
		})
})

// reading matches reads of one object, by the end of its path.
func reading(object string) local.Match {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+object)
	}
}

// metadataOf returns the metadata of an object in JSON.
func metadataOf(answer map[string]any) map[string]any { return answer["metadata"].(map[string]any) }
