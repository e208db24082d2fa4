package pace

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

const key = "team-1a2b3c-red"

func TestTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		tenants := NewTenants(100, 10)
		tenants.Take(key, 99)
		g.Expect(tenants.Wait(key)).To(BeZero())
		tenants.Take(key, 11) // more than it has
		g.Expect(tenants.Left(key)).To(BeNumerically("~", -10, 1e-6))
		g.Expect(tenants.Wait(key)).To(BeNumerically("~", 1100*time.Millisecond, time.Microsecond))
		g.Expect(tenants.Wait("another")).To(BeZero())
		time.Sleep(1101 * time.Millisecond)
		g.Expect(tenants.Wait(key)).To(BeZero())
		tenants.Take(key, 1000)
		g.Expect(tenants.Wait(key)).To(BeNumerically("<=", 10*time.Second), "no longer than for a full burst")
	})
}

// TestForgets: tenants that are deleted take no memory.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		tenants := NewTenants(100, 0.1)
		for i := range 1000 {
			tenants.Take(fmt.Sprintf("deleted-%d", i), 1)
		}
		time.Sleep(time.Minute)
		tenants.Take(key, 1)
		g.Expect(tenants.buckets).To(And(HaveLen(1), HaveKey(key)))
	})
}
