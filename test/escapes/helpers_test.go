package escapes

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// warnings returns the messages of the events that tell a tenant that an object
// is over its quota.
func warnings(ctx context.Context, t *local.Tenant, about client.Object) func() ([]string, error) {
	return kit.Events(ctx, t, about, "QuotaExceeded")
}

// shouldBeRejected asserts that an event has the reason why an object is not
// synced down, without the super cluster's names, and that it has no copy.
func shouldBeRejected(ctx context.Context, t *local.Tenant, obj client.Object, why string) {
	GinkgoHelper()
	Eventually(kit.Rejections(ctx, t, obj)).Should(ContainElement(ContainSubstring(why)))
	Expect(kit.Rejections(ctx, t, obj)()).NotTo(ContainElement(ContainSubstring(t.Key())))
	kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(t, obj))
}
