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
	type looks struct {
		number int
		every  time.Duration
		lease  *coordinationv1.Lease
		dead   bool // after the last of them
	}
	const second = time.Second
	for name, all := range map[string][]looks{
		"never renewed":         {{8, 2 * second, lease("1", duration), false}, {1, second - 1, lease("1", duration), false}, {1, 1, lease("1", duration), true}},
		"renewed at the last":   {{8, 2 * second, lease("1", duration), false}, {8, 2 * second, lease("2", duration), false}, {1, second, lease("2", duration), true}},
		"observed late":         {{1, time.Hour, lease("1", duration), false}},
		"of a longer duration":  {{20, 2 * second, lease("1", longer), false}, {1, 2 * second, lease("1", longer), true}},
		"of a shorter duration": {{8, 2 * second, lease("1", second), false}, {1, second, lease("1", second), true}},
		"not listed meanwhile":  {{1, 0, lease("1", duration), false}, {1, time.Hour, lease("1", duration), false}, {6, 2 * second, lease("1", duration), false}, {1, second, lease("1", duration), true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &peers{duration: duration, seen: map[string]sighting{}, listed: began}
			now := began
			for _, l := range all {
				dead := false
				for range l.number {
					now = now.Add(l.every)
					dead = p.expired(l.lease, p.pass(now))
				}
				if dead != l.dead {
					t.Errorf("after %s: dead is %t", now.Sub(began), dead)
				}
			}
		})
	}
}
