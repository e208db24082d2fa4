package escapes

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What a request holds until it ends", func() {
	inBothChains(attackHeads)
})

// attackHeads declares the attacks by the URLs and headers of requests that last.
func attackHeads(isolation tenancyv1alpha1.Isolation, where string) {
	const (
		ns     = "heads"
		source = "review: a watch costs nothing, with up to a megabyte of URL"
		// most is the memory that all of them may take. Without limits, those with the
		// longest URLs take several times as much.
		most = 256 << 20
	)
	var mallory *local.Tenant
	path := func(selector string) string {
		return "/api/v1/namespaces/" + ns + "/configmaps?labelSelector=" + selector
	}
	// watching returns the path of a watch that begins now: of a version that is
	// compacted it would end at once.
	watching := func(ctx context.Context, selector string) string {
		GinkgoHelper()
		var now corev1.ConfigMapList
		Expect(mallory.Client.List(ctx, &now, client.InNamespace(ns), client.Limit(1))).To(Succeed())
		return path(selector) + "&watch=1&resourceVersion=" + now.ResourceVersion
	}

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, kit.WithIsolation(isolation))
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})
	shouldServeOthers(isolation, ns)
	// shouldHold asserts that the process holds little for watches which last, and that
	// at most some of them do.
	shouldHold := func(ctx context.Context, config *rest.Config, path string, watches, open int) {
		GinkgoHelper()
		before := heap(ctx)
		unread := unreadWatches(ctx, config, path, watches)
		Eventually(unread.answered.Load).WithTimeout(4 * kit.Soon).Should(BeNumerically(">=", watches))
		Expect(unread.open.Load()).To(BeNumerically("<=", open))
		Eventually(heap).WithContext(ctx).WithTimeout(4 * kit.Soon).Should(BeNumerically("<", before+most)) // when garbage is collected
		code, text := request(ctx, mallory.Config, http.MethodGet, watching(ctx, "app=web")+"&timeoutSeconds=1", nil)
		Expect(code).To(Equal(http.StatusOK), "an ordinary watch of the same tenant: %.300s", text)
	}
	shouldRefuse := func(ctx context.Context, config *rest.Config, path string, code int, why string) {
		GinkgoHelper()
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			got, text := request(ctx, config, method, path, nil)
			Expect(got).To(Equal(code), "%.300s", text)
			Expect(text).To(ContainSubstring(why))
		}
	}

	attack("a hundred idle watches, each with a URL of 900 KB"+where, source, func(ctx SpecContext) {
		shouldRefuse(ctx, mallory.Config, path(terms(35_000)), http.StatusRequestURITooLong, "can have 65536")
		shouldHold(ctx, mallory.Config, watching(ctx, terms(450_000)), 100, 0)
	}, SpecTimeout(kit.Longest))

	attack("hundreds of idle watches, each with as many labels as a URL has room for"+where, "idea: two bytes are a requirement",
		func(ctx SpecContext) {
			selector := terms(30_000)
			shouldRefuse(ctx, mallory.Config, path(selector), http.StatusBadRequest, "can have 1000")
			shouldHold(ctx, mallory.Config, watching(ctx, selector), 400, 0)
		}, SpecTimeout(kit.Longest))

	attack("hundreds of idle watches, each with as many labels as it may have"+where, "idea: many, each within its limit", func(ctx SpecContext) {
		longest := watching(ctx, terms(1000))
		shouldHold(ctx, mallory.Config, longest, 400, 300)
		Eventually(func(g Gomega) { // some connected late
			code, text := request(ctx, mallory.Config, http.MethodGet, longest+"&timeoutSeconds=1", nil)
			g.Expect(code).To(Equal(http.StatusTooManyRequests))
			g.Expect(text).To(ContainSubstring("shorten selectors"))
		}).Should(Succeed())
	}, SpecTimeout(kit.Longest))

	attack("a hundred idle watches of an impersonated user with 900 KB of extra attributes"+where, "idea: headers last as long as URLs", func(ctx SpecContext) {
		shouldRefuse(ctx, withExtra(mallory.Config, 70<<10), path("a"), http.StatusRequestHeaderFieldsTooLarge, "can have 65536")
		shouldHold(ctx, withExtra(mallory.Config, 900<<10), watching(ctx, "a"), 100, 0)
	}, SpecTimeout(kit.Longest))
}

// terms returns a label selector with a number of requirements.
func terms(number int) string { return strings.Repeat("a,", number-1) + "a" }

// withExtra impersonates the same user with an attribute of a number of bytes.
func withExtra(config *rest.Config, bytes int) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "admin", Groups: []string{"system:masters"}, Extra: map[string][]string{"a": {filler(bytes)}},
	}
	return config
}

// heap is the heap of the process that serves all control planes, in bytes, also what
// it will free when it collects garbage.
func heap(ctx context.Context) float64 {
	GinkgoHelper()
	const name = "go_memstats_heap_alloc_bytes "
	lines := seriesWith(ctx, name)
	Expect(lines).NotTo(BeEmpty())
	value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(lines[len(lines)-1], name)), 64)
	Expect(err).NotTo(HaveOccurred())
	return value
}
