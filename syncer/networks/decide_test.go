package networks

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
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

func external(n *networkv1.Network) {
	n.Spec.Service = &networkv1.ServiceSpec{IPAM: networkv1.IPAMExternal}
}

// errNoVPC is why a provider rejects a network.
var errNoVPC = &plugins.RejectionError{Reason: "VPCNotFound", Message: "no such VPC"}

var withDNS = answer{state: network.State{Ready: true, DNSServiceIP: "10.0.0.10"}}

// answering returns the facts of a network whose provider has answered.
func answering(a answer) facts {
	return facts{provided: provided{offered: true, latest: &a}}
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
		"ready":                 {networkOf("flat"), answering(readyAnswer), want{"Ready", "Ready", true, true}},
		"no provider":           {networkOf("vpc"), facts{}, want{"Pending", "NoProvider", false, false}},
		"a finalizer of a user": {networkOf("vpc", finalized), facts{}, want{"Pending", "NoProvider", true, false}},
		"no answer yet":         {networkOf("vpc"), facts{provided: provided{offered: true, handed: true}}, want{"Pending", "Provisioning", true, false}},
		"under way":             {networkOf("vpc"), answering(answer{}), want{"Pending", "Provisioning", false, false}},
		"rejected":              {networkOf("vpc"), answering(answer{err: errNoVPC}), want{"Failed", "VPCNotFound", false, false}},
		"rejected later": {
			networkOf("vpc", finalized), answering(answer{err: fmt.Errorf("ensure: %w", errNoVPC)}), want{"Failed", "VPCNotFound", true, false},
		},
		"an error":                {networkOf("vpc", finalized), answering(answer{err: errHangs}), want{"Unknown", "ProviderFailed", true, false}},
		"without its DNS":         {networkOf("mizar", external), answering(readyAnswer), want{"Pending", "NoDNSServiceIP", false, false}},
		"with its DNS":            {networkOf("mizar", external), answering(withDNS), want{"Ready", "Ready", true, true}},
		"the name of an earlier":  {networkOf("vpc"), facts{provided: provided{offered: true, taken: true}}, want{"Pending", "NameTaken", false, false}},
		"its provider is gone":    {networkOf("vpc"), facts{provided: provided{handed: true}}, want{"Pending", "NoProvider", true, false}},
		"too many at providers":   {networkOf("vpc"), facts{provided: provided{offered: true, full: true}}, want{"Pending", "TooManyNetworks", false, false}},
		"too many":                {networkOf("flat"), facts{beyond: true}, want{"Pending", "TooManyNetworks", false, false}},
		"deleted at its provider": {networkOf("vpc", finalized, deleted), facts{released: true}, want{"Terminating", "PodsLeft", false, false}},
		"deleted, and not there": {
			networkOf("vpc", finalized, deleted), facts{released: true, provided: provided{handed: true}}, want{"Terminating", "Releasing", true, false},
		},
		"deleted with pods, and not there": {
			networkOf("vpc", finalized, deleted), facts{pods: 1, released: true, provided: provided{handed: true}},
			want{"Terminating", "PodsLeft", true, false},
		},
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
	got := decide(n, answering(readyAnswer)).status(n)
	ready := meta.FindStatusCondition(got.Conditions, "Ready")
	if got.Phase != "Ready" || got.DNSServiceIP != "" || got.ObservedGeneration != 3 || len(got.Conditions) != 1 || ready == nil {
		t.Fatalf("the status is %+v", got)
	}
	if ready.Reason != "Ready" || ready.ObservedGeneration != 3 || !ready.LastTransitionTime.Equal(&since) {
		t.Errorf("the condition is %+v", ready)
	}
	n.Status = got
	if diff := cmp.Diff(got, decide(n, answering(readyAnswer)).status(n)); diff != "" {
		t.Errorf("the same decision has another status (-want +got):\n%s", diff)
	}
}

// TestMessages: a tenant reads what it has to change, and not what concerns the
// platform.
func TestMessages(t *testing.T) {
	secret := errors.New("dial tcp 192.0.2.1:443: no route")
	leaving := func(a answer) facts { return facts{released: true, provided: provided{handed: true, latest: &a}} }
	vpc, gone := networkOf("vpc"), networkOf("vpc", deleted)
	for name, tc := range map[string]struct {
		network *networkv1.Network
		facts   facts
		want    string
	}{
		"rejected":              {vpc, answering(answer{err: errNoVPC}), "no such VPC"},
		"under way":             {vpc, answering(answer{state: network.State{Message: "creating\nroutes"}}), "creating routes"},
		"an error":              {vpc, answering(answer{err: secret}), failing(vpc)},
		"being deleted":         {gone, leaving(answer{}), "its provider is deleting the network"},
		"the deletion fails":    {gone, leaving(answer{err: secret}), failing(gone)},
		"the deletion rejected": {gone, leaving(answer{err: errNoVPC}), "its provider does not delete the network: no such VPC"},
	} {
		if got := decide(tc.network, tc.facts).message; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := decide(networkOf("mizar", external), answering(withDNS)).status(networkOf("mizar")); got.DNSServiceIP != "10.0.0.10" {
		t.Errorf("the address of the DNS service is %q", got.DNSServiceIP)
	}
}

// TestUndecided: a restart of the syncer does not change the status of a network
// whose provider has not answered yet.
func TestUndecided(t *testing.T) {
	known := facts{provided: provided{offered: true}}
	n := networkOf("vpc")
	if decide(n, known).undecided {
		t.Error("a new network has no status")
	}
	n.Status.ObservedGeneration = n.Generation
	if d := decide(n, known); !d.undecided || d.usable {
		t.Errorf("a known network is decided: %+v", d)
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
