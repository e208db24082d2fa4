package networks

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

type change = func(*networkv1.Network)

func networkOf(kind string, change ...change) *networkv1.Network {
	n := &networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "net-1", Generation: 3}, Spec: networkv1.NetworkSpec{Type: kind}}
	for _, f := range change {
		f(n)
	}
	return n
}

func finalized(n *networkv1.Network) {
	n.Finalizers = []string{"example.com/other", networkv1.Finalizer}
}

func deleted(n *networkv1.Network) { n.DeletionTimestamp = new(metav1.Now()) }

func ranged(n *networkv1.Network) {
	n.Spec.Service = &networkv1.ServiceSpec{CIDRs: []networkv1.CIDR{"10.0.0.0/16"}}
}

func TestDecide(t *testing.T) {
	type want struct {
		Phase             networkv1.Phase
		Reason            string
		Finalizer, Usable bool
	}
	for name, tc := range map[string]struct {
		network *networkv1.Network
		facts   facts
		want    want
	}{
		"flat":                   {networkOf("flat"), facts{}, want{"Ready", "Ready", true, true}},
		"no provider":            {networkOf("vpc"), facts{}, want{"Pending", "NoProvider", false, false}},
		"a finalizer of a user":  {networkOf("vpc", finalized), facts{}, want{"Pending", "NoProvider", true, false}},
		"ranges":                 {networkOf("flat", ranged), facts{}, want{"Failed", "ServiceRangesUnsupported", false, false}},
		"ranges, later":          {networkOf("flat", ranged, finalized), facts{}, want{"Failed", "ServiceRangesUnsupported", true, false}},
		"too many":               {networkOf("flat"), facts{beyond: true}, want{"Pending", "TooManyNetworks", false, false}},
		"deleted with pods":      {networkOf("flat", finalized, deleted), facts{pods: 2, released: true}, want{"Terminating", "PodsLeft", true, false}},
		"deleted, not yet known": {networkOf("flat", finalized, deleted), facts{}, want{"Terminating", "PodsLeft", true, false}},
		"deleted without pods":   {networkOf("flat", finalized, deleted), facts{released: true}, want{"Terminating", "PodsLeft", false, false}},
		"deleted, never ready":   {networkOf("vpc", deleted), facts{released: true}, want{"Terminating", "PodsLeft", false, false}},
		"the API is deleted": {
			networkOf("flat", finalized, deleted), facts{recalled: true, pods: 2}, want{"Terminating", "PodsLeft", false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(tc.network, tc.facts)
			if diff := cmp.Diff(tc.want, want{d.phase, d.reason, d.finalizer, d.usable}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatus: what a tenant has written into the status is replaced, and the
// time of the transition stays.
func TestStatus(t *testing.T) {
	since := metav1.NewTime(time.Unix(1000, 0))
	n := networkOf("flat", func(n *networkv1.Network) {
		n.Status = networkv1.NetworkStatus{Phase: "Unknown", DNSServiceIP: "192.0.2.1", Conditions: []metav1.Condition{
			{Type: "Mine", Status: "True"}, {Type: "Ready", Status: "True", Reason: "Old", LastTransitionTime: since},
		}}
	})
	got := decide(n, facts{}).status(n)
	ready := meta.FindStatusCondition(got.Conditions, "Ready")
	if got.Phase != "Ready" || got.DNSServiceIP != "" || got.ObservedGeneration != 3 || len(got.Conditions) != 1 || ready == nil {
		t.Fatalf("the status is %+v", got)
	}
	if ready.Reason != "Ready" || ready.ObservedGeneration != 3 || !ready.LastTransitionTime.Equal(&since) {
		t.Errorf("the condition is %+v", ready)
	}
	n.Status = got
	if diff := cmp.Diff(got, decide(n, facts{}).status(n)); diff != "" {
		t.Errorf("the same decision has another status (-want +got):\n%s", diff)
	}
}

func TestByAge(t *testing.T) {
	at := func(name string, second int64) networkv1.Network {
		return networkv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}}
	}
	networks := []networkv1.Network{at("c", 2), at("b", 1), at("default", 9), at("a", 1)}
	byAge(networks, "default")
	var got []string
	for _, n := range networks {
		got = append(got, n.Name)
	}
	if want := []string{"default", "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}
