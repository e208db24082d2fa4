package host

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		in   situation
		want step
	}{
		"where it is to be":                      {situation{at: "a", want: "a", connected: true}, serve},
		"to be moved":                            {situation{at: "a", want: "b", connected: true}, prepare},
		"to a store that is not connected":       {situation{at: "a", want: "b"}, serve},
		"after a failure":                        {situation{at: "a", want: "b", connected: true, deferred: true}, serve},
		"while the store is prepared":            {situation{at: "a", want: "b", connected: true, stage: preparing}, serve},
		"when it is prepared":                    {situation{at: "a", want: "b", connected: true, stage: prepared}, transferData},
		"prepared, and lost since":               {situation{at: "a", want: "b", stage: prepared}, serve},
		"while it is copied":                     {situation{at: "a", want: "b", connected: true, stoppedFor: "b", stage: transferring}, await},
		"copied, with a stale view of the store": {situation{at: "a", want: "b", stoppedFor: "b", stage: transferring}, await},
		"copied":                                 {situation{at: "b", want: "b", connected: true, stoppedFor: "b", stage: opened}, serve},
		"copied in vain":                         {situation{at: "a", want: "b", connected: true, stoppedFor: "b", stage: opened}, serve},
		"interrupted before the switch":          {situation{at: "a", want: "b", connected: true, stoppedFor: "b"}, transferData},
		"interrupted after the switch":           {situation{at: "b", want: "b", connected: true, stoppedFor: "b"}, reopen},
		"interrupted, and the store is lost":     {situation{at: "a", want: "b", stoppedFor: "b"}, reopen},
		"interrupted, and cancelled":             {situation{at: "a", want: "a", connected: true, stoppedFor: "b"}, reopen},
		"interrupted, and asked elsewhere":       {situation{at: "a", want: "c", connected: true, stoppedFor: "b"}, reopen},
		"interrupted, and failed here":           {situation{at: "a", want: "b", connected: true, stoppedFor: "b", deferred: true}, reopen},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(decide(test.in)).To(Equal(test.want)) })
	}
}

// dataIn returns a control plane whose data is in a store, and which moved to
// others before.
func dataIn(store, want string, change ...func(*tenancyv1alpha1.HostedControlPlaneStatus)) *tenancyv1alpha1.HostedControlPlane {
	plane := &tenancyv1alpha1.HostedControlPlane{
		Spec:   tenancyv1alpha1.HostedControlPlaneSpec{Store: want},
		Status: tenancyv1alpha1.HostedControlPlaneStatus{Store: store, Attempt: 1},
	}
	for _, f := range change {
		f(&plane.Status)
	}
	return plane
}

func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		err          error
		reason, text string
	}{
		"far behind": {&transfer.FarBehindError{Revision: 1, Target: 2_000_000}, tenancyv1alpha1.ReasonStoreBehind, "etcdutl snapshot restore"},
		"outrun":     {fmt.Errorf("move: %w", transfer.ErrOutrun), tenancyv1alpha1.ReasonStoreBehind, "rises nearly as fast"},
		"no room":    {&hosted.NoRoomError{}, tenancyv1alpha1.ReasonStoreFull, "has no room"},
		"full":       {fmt.Errorf("copy: %w", rpctypes.ErrNoSpace), tenancyv1alpha1.ReasonStoreFull, "has no room"},
		"other":      {errors.New("it hangs"), tenancyv1alpha1.ReasonMoveFailed, "it hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reason, message := refusal(dataIn("a", "b"), test.err)
			g.Expect(reason).To(Equal(test.reason))
			g.Expect(message).To(And(ContainSubstring("ControlPlaneStore b"), ContainSubstring(test.text), ContainSubstring("stays in a, and the move is retried")))
		})
	}
}

func TestLeftovers(t *testing.T) {
	remainders := func(in ...string) func(*tenancyv1alpha1.HostedControlPlaneStatus) {
		return func(s *tenancyv1alpha1.HostedControlPlaneStatus) {
			for _, store := range in {
				leave(s, store, metav1.Now())
			}
		}
	}
	stopped := func(s *tenancyv1alpha1.HostedControlPlaneStatus) {
		s.Move = &tenancyv1alpha1.HostedControlPlaneMove{To: "b"}
	}
	for name, test := range map[string]struct {
		plane *tenancyv1alpha1.HostedControlPlane
		want  []string
	}{
		"never moved":          {dataIn("a", "a", func(s *tenancyv1alpha1.HostedControlPlaneStatus) { s.Attempt = 0 }), nil},
		"about to be moved":    {dataIn("a", "b", func(s *tenancyv1alpha1.HostedControlPlaneStatus) { s.Attempt = 0 }), nil},
		"being moved":          {dataIn("a", "b", stopped), []string{"b"}},
		"moved":                {dataIn("b", "b", stopped, remainders("a")), []string{"a"}},
		"cancelled":            {dataIn("a", "a", stopped), []string{"b"}},
		"to another one":       {dataIn("a", "c", stopped, remainders("d")), []string{"b", "c", "d"}},
		"deleted long ago":     {dataIn("b", "b"), nil},
		"the data is in there": {dataIn("a", "a", remainders("a", "b")), []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if test.want == nil {
				g.Expect(leftovers(test.plane)).To(BeEmpty())
				return
			}
			g.Expect(leftovers(test.plane)).To(Equal(test.want))
		})
	}
}
