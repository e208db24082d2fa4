package hosted

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAttemptsAreCountedUntilForgotten(t *testing.T) {
	g := NewWithT(t)
	all := openStores(t, storeOptions(t.TempDir()))
	defer closeStores(t, all)
	tries, other := attemptsIn(all.tenants.client, "red"), attemptsIn(all.tenants.client, "red-2")
	other.begin(t.Context(), 4)
	g.Expect(tries.count(t.Context())).To(BeZero())
	tries.begin(t.Context(), 0)
	tries.begin(t.Context(), tries.count(t.Context()))
	g.Expect(tries.count(t.Context())).To(Equal(2))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	tries.forget(stopped)
	tries.forget(t.Context())
	g.Expect(tries.count(t.Context())).To(BeZero())
	g.Expect(other.count(t.Context())).To(Equal(5))
	g.Expect(all.tenants.wipe(t.Context(), "red-2")).To(Succeed())
	g.Expect(other.count(t.Context())).To(BeZero())
	putAll(t, all.tenants, attemptsRoot+"red")
	g.Expect(tries.count(t.Context())).To(Equal(1), "a value that is not a number")
}
