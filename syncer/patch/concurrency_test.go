package patch

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManyGoroutinesShareASet checks that a Set and the tenant's objects can be
// used concurrently.
func TestManyGoroutinesShareASet(t *testing.T) {
	patches := set(
		fields("/metadata/annotations/a", "self.metadata.name + tenant.name", "/metadata/annotations/b", "['x', 'y'].map(e, e + 'z').join('-')"),
		when("size(self.metadata) > 1 && object.metadata.annotations.a.matches('b.*e$')", fields("/metadata/labels/matched", "'yes'")),
		operations(`[{"op": "add", "path": "/metadata/annotations/list", "value": "x"}, {"op": "move", "from": "/metadata/annotations/list", "path": "/metadata/annotations/c"}]`),
	)
	typedSelf, untypedSelf := tenantPod(), certificate()
	wantPod := pod()
	if err := patches.Apply(t.Context(), "Pod", wantPod, typedSelf, blue); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				typed, untyped := pod(), certificate()
				for kind, of := range map[string][2]client.Object{"Pod": {typed, typedSelf}, certificates: {untyped, untypedSelf}} {
					if err := patches.Apply(t.Context(), kind, of[0], of[1], blue); err != nil {
						t.Error(err)
					}
				}
				if !cmp.Equal(wantPod, typed) {
					t.Error(cmp.Diff(wantPod, typed))
				}
				if name, _, _ := unstructured.NestedString(untyped.Object, "metadata", "annotations", "c"); name != "x" {
					t.Errorf("got %v", untyped)
				}
			}
		})
	}
	group.Wait()
}
