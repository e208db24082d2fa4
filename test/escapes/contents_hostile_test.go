package escapes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
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
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))
	})

	attack("a ConfigMap that is another state at each read", "idea: what is newer than the watch is read again", func(ctx SpecContext) {
		var reads atomic.Int64
		answering(hostile, reading("configmaps/moody"), local.Rewrite(func(answer map[string]any) {
			n := reads.Add(1)
			answer["data"] = map[string]any{"x": fmt.Sprint(n)}
			metadataOf(answer)["resourceVersion"] = fmt.Sprint(1_000_000_000 + n)
		}))
		c, p := configMap(ns, "moody", 1), kit.Pod(ns, "moody", mounting("moody"))
		kit.Create(ctx, mallory.Client, c, p)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, c))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, p))
		Eventually(running(ctx, mallory, ns)).WithTimeout(relisted).Should(Equal(1), "the last event of the pod")
		// Events of both objects lead to a few reads. A newer answer is no
		// reason to read again, nor is a round of the patrol: it ends.
		Eventually(func(g Gomega) {
			g.Consistently(reads.Load, kit.Quiet).Should(Equal(reads.Load()))
		}).WithContext(ctx).Should(Succeed())
		settled := reads.Load()
		Expect(settled).To(BeNumerically("<", 10))
		Consistently(reads.Load, 2*patrol).Should(Equal(settled))
	})

	// shouldBeRefused asserts that a ConfigMap has no copy while reads of it
	// are answered with changes.
	shouldBeRefused := func(ctx context.Context, name string, change func(answer map[string]any)) {
		GinkgoHelper()
		reads := reading("configmaps/" + name)
		undo := hostile.On(reads, local.Rewrite(change))
		c, p := configMap(ns, name, 1), kit.Pod(ns, name, mounting(name))
		kit.Create(ctx, mallory.Client, c, p)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, p))
		// The watches that the new answers have broken begin again first.
		Eventually(func() int { return hostile.Seen(reads) }).WithTimeout(relisted).Should(BeNumerically(">", 0))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, c))
		undo()
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, c))
	}

	attack("a read that is answered with an object of another name", "idea: the copy would be another object's", func(ctx SpecContext) {
		shouldBeRefused(ctx, "asked", func(answer map[string]any) {
			metadataOf(answer)["name"], metadataOf(answer)["namespace"] = "answered", "default"
		})
	})

	attack("a read that is answered with an older state than the watch has shown", "idea: a deleted Secret returns",
		func(ctx SpecContext) {
			shouldBeRefused(ctx, "old", func(answer map[string]any) { metadataOf(answer)["resourceVersion"] = "1" })
		})

	attack("a token of 1 MB for a pod", "review: answers to TokenRequests", func(ctx SpecContext) {
		answering(hostile, local.Subresource("token"), local.Rewrite(func(answer map[string]any) {
			answer["status"] = map[string]any{"token": strings.Repeat("x", 1<<20), "expirationTimestamp": "2100-01-01T00:00:00Z"}
		}))
		p := kit.Pod(ns, "large-token")
		kit.Create(ctx, mallory.Client, p)
		shouldHaveNoToken(ctx, mallory, p, "bytes, which is not between")
	})

	attack("a token that has expired, to be requested again without end", "review: answers to TokenRequests", func(ctx SpecContext) {
		answering(hostile, local.Subresource("token"), local.Rewrite(func(answer map[string]any) {
			answer["status"] = map[string]any{"token": "x", "expirationTimestamp": "1970-01-01T00:00:00Z"}
		}))
		p := kit.Pod(ns, "old-token")
		kit.Create(ctx, mallory.Client, p)
		shouldHaveNoToken(ctx, mallory, p, "has expired or is about to")
	})
})

// shouldHaveNoToken asserts that an event has the reason why a pod has no
// token, and that the super cluster stores none for it.
func shouldHaveNoToken(ctx context.Context, t *local.Tenant, p *corev1.Pod, why string) {
	GinkgoHelper()
	Eventually(kit.Rejections(ctx, t, p)).WithTimeout(relisted).Should(ContainElement(ContainSubstring(why)))
	kit.ShouldStayAbsent(ctx, super.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: t.Super(p.Namespace), Name: names.TokenSecret(p.Name),
	}})
}

// reading matches reads of one object, by the end of its path.
func reading(object string) local.Match {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+object)
	}
}

// metadataOf returns the metadata of an object in JSON.
func metadataOf(answer map[string]any) map[string]any { return answer["metadata"].(map[string]any) }
