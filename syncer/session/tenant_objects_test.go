package session_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// TestPatchTenantStatus checks that the event of a write counts as known only if
// the status is what was wanted: changes of two clients can lead to one event.
func TestPatchTenantStatus(t *testing.T) {
	for name, interfere := range map[string]bool{"no other client writes": false, "another client writes": true} {
		t.Run(name, func(t *testing.T) {
			ctx, k := t.Context(), kindstest.Typed(kindstest.Plain())
			was := kindstest.Named("web")
			c := fake.NewClientBuilder().WithObjects(was).WithStatusSubresource(was).Build()
			read := func() *corev1.Pod {
				found := &corev1.Pod{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(was), found); err != nil {
					t.Fatal(err)
				}
				return found
			}
			was = read()
			if interfere {
				other := read()
				other.Status.Message = "other"
				if err := c.Status().Update(ctx, other); err != nil {
					t.Fatal(err)
				}
			}
			s := &session.TenantObjects{Client: c, TenantRecent: caches.NewRecent()}
			now := was.DeepCopy()
			now.Status.Phase = corev1.PodRunning
			if err := s.PatchTenantStatus(ctx, k, was, now); err != nil {
				t.Fatal(err)
			}
			if known := s.TenantRecent.Seen(k.Name, read()); known == interfere {
				t.Errorf("the event counts as known: %t", known)
			}
		})
	}
}
