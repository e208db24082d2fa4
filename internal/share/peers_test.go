package share

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestALeaseIsDeadWhenItStoodUnchanged checks expiry by the observer's clock,
// whatever time the lease states.
func TestALeaseIsDeadWhenItStoodUnchanged(t *testing.T) {
	const longer = 40 * time.Second
	began := time.Now()
	lease := func(version string, lasts time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "other", ResourceVersion: version},
			Spec: coordinationv1.LeaseSpec{
				LeaseDurationSeconds: new(int32(lasts.Seconds())), RenewTime: &metav1.MicroTime{Time: began.Add(-time.Hour)},
			},
		}
	}
	type look struct {
		after time.Duration
		lease *coordinationv1.Lease
		dead  bool
	}
	for name, looks := range map[string][]look{
		"never renewed":         {{0, lease("1", duration), false}, {duration - 1, lease("1", duration), false}, {duration, lease("1", duration), true}},
		"renewed at the last":   {{0, lease("1", duration), false}, {duration, lease("2", duration), false}, {2*duration - 1, lease("2", duration), false}},
		"observed late":         {{time.Hour, lease("1", duration), false}},
		"of a longer duration":  {{0, lease("1", longer), false}, {duration, lease("1", longer), false}, {longer, lease("1", longer), true}},
		"of a shorter duration": {{0, lease("1", time.Second), false}, {duration - 1, lease("1", time.Second), false}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &peers{duration: duration, seen: map[string]sighting{}}
			for _, l := range looks {
				if dead := p.expired(l.lease, began.Add(l.after)); dead != l.dead {
					t.Errorf("after %s: dead is %t", l.after, dead)
				}
			}
		})
	}
}
