package resources

import (
	"testing"

	nodev1 "k8s.io/api/node/v1"
)

// TestRuntimeClass checks that the tenant's admission adds nothing to pods that
// the super cluster's admission would reject.
func TestRuntimeClass(t *testing.T) {
	want := &nodev1.RuntimeClass{ObjectMeta: classMeta(nil), Handler: "text-1"}
	testClass(t, RuntimeClass(), superClass(&nodev1.RuntimeClass{}, nil), want,
		func(c *nodev1.RuntimeClass) { c.Handler = "other" },
	)
}
