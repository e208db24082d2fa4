package escapes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// gibi is more than any answer may have, of bytes.
const gibi = 1 << 30

// Beginnings and parts of answers that do not end.
const (
	podListBeginning = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	podItem          = `{"metadata":{"name":"a","namespace":"default","uid":"1","resourceVersion":"1"}},`
	padding          = "xxxxxxxxxxxxxxxx"
)

// podEvent is an event of a watch of pods that are padded to a size.
func podEvent(n, size int) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","namespace":"default","uid":"u%d",`+
		`"resourceVersion":"%d","annotations":{"a":"%s"}},"spec":{"containers":[{"name":"a","image":"%s"}]}}}`+"\n",
		n, n, n+1, strings.Repeat("x", 200<<10), strings.Repeat("x", size))
}

var _ = Describe("Answers of a tenant's apiserver", Ordered, func() {
	const (
		ns        = "honest"
		manyBytes = "review: 6 GiB in two minutes"
		manyItems = "idea: JSON as an archive bomb"
	)
	var (
		// platform is what a tenant's apiserver must not lead to: it reaches
		// the super cluster as an admin, and is trusted.
		platform *local.Hostile
		honest   *local.Tenant
		there    *local.Tenant
	)

	BeforeAll(func(ctx SpecContext) {
		platform = kit.Hostile(super.Config)
		honest = tenant(ctx)
		kit.Create(ctx, honest.Client, kit.Namespace(ns))
		there = hostedElsewhere(ctx)
	})

	// attempt creates a tenant with an apiserver that answers some requests
	// otherwise.
	attempt := func(ctx context.Context, match local.Match, answer local.Answer) *tenancyv1alpha1.VirtualCluster {
		GinkgoHelper()
		hostile := kit.Hostile(there.Config)
		hostile.On(match, answer)
		return externalCluster(ctx, hostile, platform.CA())
	}

	// refused asserts that a tenant's answers are not read, that its condition
	// has the reason, and that others are synced meanwhile.
	refused := func(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, why string) {
		GinkgoHelper()
		Eventually(kit.Read(ctx, super.Client, vc)).Should(haveSyncing(tenancyv1alpha1.ReasonAnswerRefused, why))
		shouldSync(ctx, honest, ns, vc.Name)
	}

	attack("a list that redirects to the super cluster's apiserver", "CVE-2022-3172", func(ctx SpecContext) {
		vc := attempt(ctx, local.Lists("pods"), local.Redirect(platform.URL()))
		refused(ctx, vc, "redirects")
		Expect(platform.Seen(local.Everything)).To(BeZero())
	})

	attack("the question who the tenant is, redirected with the credential", "CVE-2022-3172", func(ctx SpecContext) {
		vc := attempt(ctx, local.Path("/api/v1/namespaces"), local.Redirect(platform.URL()))
		refused(ctx, vc, "redirects")
		Expect(platform.Seen(local.Authorized)).To(BeZero())
		Expect(platform.Seen(local.Everything)).To(BeZero())
	})

	attack("discovery that redirects to the super cluster's apiserver", "CVE-2022-3172", func(ctx SpecContext) {
		vc := attempt(ctx, local.Path("/api"), local.Redirect(platform.URL()))
		refused(ctx, vc, "redirects")
		Expect(platform.Seen(local.Everything)).To(BeZero())
	})

	attack("the manager's question for the version, redirected to the super cluster's apiserver", "CVE-2022-3172", func(ctx SpecContext) {
		vc := attempt(ctx, local.Path("/version"), local.Redirect(platform.URL()))
		Eventually(kit.Read(ctx, super.Client, vc)).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonUnreachable))
		Expect(platform.Seen(local.Everything)).To(BeZero())
	})

	attack("an endless answer to the manager's question for the version", manyBytes, func(ctx SpecContext) {
		vc := attempt(ctx, local.Path("/version"), local.Endless(http.StatusOK, `{"gitVersion":"`, padding, gibi))
		Eventually(kit.Read(ctx, super.Client, vc)).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonUnreachable))
	})

	for _, a := range []struct {
		text, source string
		match        local.Match
		answer       local.Answer
		why          string
	}{
		{
			"a gzip bomb in a list", manyBytes, local.Lists("pods"),
			local.NoStream(local.GzipBomb(http.StatusOK, podListBeginning, podItem, gibi)), "Content-Encoding",
		}, {
			"a gzip bomb in an object", manyBytes, local.Path("/api/v1/namespaces"),
			local.GzipBomb(http.StatusOK, `{"kind":"`, padding, gibi), "Content-Encoding",
		}, {
			"a gzip bomb in an error", manyBytes, local.Path("/api/v1/namespaces"),
			local.GzipBomb(http.StatusInternalServerError, "", padding, gibi), "Content-Encoding",
		}, {
			"a gzip bomb in discovery", manyBytes, local.Path("/apis"),
			local.GzipBomb(http.StatusOK, `{"kind":"`, padding, gibi), "Content-Encoding",
		}, {
			"an endless error", manyBytes, local.Path("/api/v1/namespaces"),
			local.Endless(http.StatusForbidden, "", padding, gibi), "the bytes of an error",
		}, {
			"an error in protobuf of 300 bytes, of which each level is decoded twice",
			"idea: the decoder of errors takes other types, and of entries of maps it reads values that reach beyond them",
			local.Path("/api/v1/namespaces"), func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write(nestingtest.Definition(nestingtest.Doubling(60)))
			}, "Content-Type",
		}, {
			"an endless list", manyBytes, local.Lists("pods"),
			local.NoStream(local.Endless(http.StatusOK, podListBeginning, padding, gibi)), "the bytes of a page",
		}, {
			"a list of empty items, which take a thousand times their bytes", manyItems, local.Lists("pods"),
			local.NoStream(local.Endless(http.StatusOK, podListBeginning, "{},", gibi)), "the requested items",
		}, {
			"a list of pages without end", "Kubernetes documentation: API Concepts, limit and continue", local.Lists("pods"),
			local.NoStream(local.Status(http.StatusOK,
				`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"more"},"items":[]}`)), "the pages of a list",
		}, {
			"an event of 100 MB", "review: everything that is read from a tenant", local.Lists("pods"),
			local.Endless(http.StatusOK, `{"type":"ADDED","object":{"kind":"`, padding, 100<<20), "the bytes of an event",
		}, {
			"an event of empty containers, which take a thousand times their bytes", manyItems, local.Lists("pods"),
			local.Endless(http.StatusOK, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","spec":{"containers":[`, "{},", 3<<20),
			"the elements of JSON",
		},
	} {
		attack(a.text, a.source, func(ctx SpecContext) { refused(ctx, attempt(ctx, a.match, a.answer), a.why) })
	}

	attack("objects without end, each of which is small enough", "review: everything that is read from a tenant", func(ctx SpecContext) {
		vc := attempt(ctx, local.Lists("pods"), func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			for n := 0; r.Context().Err() == nil; n++ {
				if _, err := w.Write([]byte(podEvent(n, 1<<20))); err != nil {
					return
				}
			}
		})
		refused(ctx, vc, "of the syncer's memory")
	})

	attack("an answer that drips", "slow-read attacks, turned round", func(ctx SpecContext) {
		vc := attempt(ctx, local.Path("/api/v1/namespaces"), local.Drip(`{"kind":"`+strings.Repeat(" ", 1<<20), 50*time.Millisecond))
		Eventually(kit.Read(ctx, super.Client, vc)).Should(haveSyncing(tenancyv1alpha1.ReasonUnreachable, "does not answer"))
		shouldSync(ctx, honest, ns, "drip")
	})

	attack("another UID for who the tenant is, made to be shown to an admin", "idea: text in conditions", func(ctx SpecContext) {
		vc := attempt(ctx, local.Path("/api/v1/namespaces"), local.RewriteItems(func(object map[string]any) {
			object["metadata"].(map[string]any)["uid"] = "x\nAll is well. Run: kubectl delete vc --all"
		}))
		Eventually(kit.Read(ctx, super.Client, vc)).Should(haveSyncing(tenancyv1alpha1.ReasonUnreachable, "does not answer"))
		Expect(kit.Read(ctx, super.Client, vc)()).NotTo(haveSyncing(tenancyv1alpha1.ReasonUnreachable, "All is well"))
	})

	attack("discovery that names 20,000 API groups", "idea: discovery asks for each", func(ctx SpecContext) {
		hostile := kit.Hostile(there.Config)
		groups := make([]string, 20_000)
		for i := range groups {
			groups[i] = fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i)
		}
		hostile.On(local.Path("/apis"), local.Status(http.StatusOK,
			`{"kind":"APIGroupList","apiVersion":"v1","groups":[`+strings.Join(groups, ",")+`]}`))
		vc := externalCluster(ctx, hostile, nil)
		Expect(super.WaitReady(ctx, vc)).To(Succeed())
		Expect(hostile.Seen(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/apis/g") })).To(BeZero())
	})

	It("of an honest apiserver are synced, with what it lists in pages too", func(ctx SpecContext) {
		hostile := kit.Hostile(hostedElsewhere(ctx).Config)
		hostile.On(local.Lists("pods"), local.NoStream(func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
			behind.ServeHTTP(w, r)
		}))
		Expect(super.WaitReady(ctx, externalCluster(ctx, hostile, nil))).To(Succeed())
	})
})

// externalCluster creates the VirtualCluster of an apiserver, and does not wait
// for it.
func externalCluster(ctx context.Context, hostile *local.Hostile, trusted []byte) *tenancyv1alpha1.VirtualCluster {
	GinkgoHelper()
	kubeconfig, err := hostile.Kubeconfig(trusted)
	Expect(err).NotTo(HaveOccurred())
	vc := kit.VirtualCluster()
	kit.SetExternal(vc, kit.KubeconfigSecret(ctx, super, vc.Name, kubeconfig))
	kit.Create(ctx, super.Client, vc)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, vc)).To(Succeed()) })
	return vc
}

// haveSyncing matches a VirtualCluster that is not synced for a reason.
func haveSyncing(reason, message string) gomegatypes.GomegaMatcher {
	return WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) *metav1.Condition {
		return meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
	}, And(Not(BeNil()), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
}
