package limits

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ported is the kind of services, with their ports as a limited part.
func ported() *kinds.Kind {
	return &kinds.Kind{Name: "Service", Resource: "services", Down: &kinds.Down[client.Object]{Parts: []kinds.Part[client.Object]{{
		Resource: "ports", Amount: func(obj client.Object) int { return len(obj.(*corev1.Service).Spec.Ports) },
	}}}}
}

// TestMaximumInANamespace checks that copies count in their namespace, also
// those of which no event has come, and that the message does not name it.
func TestMaximumInANamespace(t *testing.T) {
	const most = 3
	k, u := &kinds.Kind{Name: "Service", Resource: "services", Down: &kinds.Down[client.Object]{MaxInNamespace: most}}, NewUsage()
	in := func(ns string, i int) *corev1.Service {
		svc := copyOfCluster("blue", fmt.Sprint("s", i), 0)
		svc.Namespace = ns
		return svc
	}
	add := func(ns string, i int) error {
		_, err := u.Reserve("blue", k, in(ns, i), nil, Limits{AnyResource: -1})
		return err
	}
	for i := range most {
		for _, ns := range []string{"blue-shop", "blue-other"} {
			if err := add(ns, i); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			u.Observe(k, nil, in("blue-shop", i))
		}
	}
	err := add("blue-shop", most)
	if err == nil || !strings.Contains(err.Error(), "no more than 3 services in a namespace") || strings.Contains(err.Error(), "blue") {
		t.Errorf("one too many: %v", err)
	}
	u.Observe(k, in("blue-shop", 0), nil)
	if err := add("blue-shop", most); err != nil {
		t.Error(err)
	}
}

func copyOfCluster(cluster, name string, ports int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{names.Cluster: cluster, names.UID: "uid"}},
		Spec:       corev1.ServiceSpec{Ports: make([]corev1.ServicePort, ports)},
	}
}

func keyOf(obj client.Object) kinds.ObjectKey {
	return kinds.ObjectKey{Kind: "Service", Key: client.ObjectKeyFromObject(obj)}
}

// atMost returns the growth from one state of a copy to another, with a limit
// for each resource.
func atMost(k *kinds.Kind, was, now client.Object, most int64) growth {
	return growth{before: k.Amounts(was), after: k.Amounts(now), most: map[string]int64{"services": most, "ports": most}}
}

func TestUsageFollowsEvents(t *testing.T) {
	k, u := ported(), NewUsage()
	a, grown, b := copyOfCluster("blue", "a", 1), copyOfCluster("blue", "a", 3), copyOfCluster("green", "b", 2)
	stolen := copyOfCluster("", "a", 3)
	for i, step := range []struct {
		was, now             client.Object
		services, ports, all int64
	}{
		{nil, a, 1, 1, 1},
		{nil, b, 1, 1, 2},
		{a, grown, 1, 3, 2},
		{grown, stolen, 0, 0, 1},
		{stolen, grown, 1, 3, 2},
		{nil, copyOfCluster("", "platform", 9), 1, 3, 2},
		{nil, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.Cluster: "blue"}}}, 1, 3, 2},
		{grown, nil, 0, 0, 1},
		{b, nil, 0, 0, 0},
	} {
		u.Observe(k, step.was, step.now)
		got := u.used["blue"]
		if got["services"] != step.services || got["ports"] != step.ports || int64(len(u.used)) != min(step.all, 2) {
			t.Fatalf("step %d: blue uses %v, all use %v", i, got, u.used)
		}
	}
}

// TestABurstStaysWithinTheLimit checks that a copy that is being written counts
// before it is in the cache, and counts once.
func TestABurstStaysWithinTheLimit(t *testing.T) {
	k, u := ported(), NewUsage()
	allowed := 0
	for i := range 10 {
		obj := copyOfCluster("blue", fmt.Sprint(i), 1)
		if u.reserve("blue", keyOf(obj), atMost(k, nil, obj, 4)) == "" {
			allowed++
		}
		if i%2 == 0 && allowed <= 4 {
			u.Observe(k, nil, obj)
		}
	}
	if allowed != 4 {
		t.Errorf("%d are allowed, want 4", allowed)
	}
	if len(u.reserved["blue"]) != 2 {
		t.Errorf("%d are reserved, want the 2 that the cache does not show", len(u.reserved["blue"]))
	}
	if other := copyOfCluster("green", "0", 4); u.reserve("green", keyOf(other), atMost(k, nil, other, 4)) != "" {
		t.Error("another tenant is limited by what this one has")
	}
}

func TestReservationsAreGivenBack(t *testing.T) {
	k, u := ported(), NewUsage()
	one, two := copyOfCluster("blue", "1", 1), copyOfCluster("blue", "2", 1)
	try := func(obj client.Object) string { return u.reserve("blue", keyOf(obj), atMost(k, nil, obj, 1)) }
	if got := try(one); got != "" {
		t.Errorf("the first is rejected for %s", got)
	}
	if got := try(one); got != "" {
		t.Errorf("the first, retried, is rejected for %s", got)
	}
	if got := try(two); got != "ports" {
		t.Errorf("the second is rejected for %q, want ports", got)
	}
	u.release("blue", keyOf(one))
	if got := try(two); got != "" {
		t.Errorf("after the first was released, the second is rejected for %s", got)
	}
}

// TestGrowthCounts checks that only the growth of a changed copy counts.
func TestGrowthCounts(t *testing.T) {
	k, u := ported(), NewUsage()
	was := copyOfCluster("blue", "a", 2)
	u.Observe(k, nil, was)
	three, five := copyOfCluster("blue", "a", 3), copyOfCluster("blue", "a", 5)
	if got := u.reserve("blue", keyOf(was), atMost(k, was, five, 4)); got != "ports" {
		t.Errorf("growing to five is rejected for %q, want ports", got)
	}
	if got := u.reserve("blue", keyOf(was), atMost(k, was, three, 4)); got != "" {
		t.Errorf("growing to three is rejected for %s", got)
	}
	other := copyOfCluster("blue", "b", 2)
	if got := u.reserve("blue", keyOf(other), atMost(k, nil, other, 4)); got != "ports" {
		t.Errorf("another with two beside three is rejected for %q, want ports", got)
	}
	u.Observe(k, was, was.DeepCopy()) // an event from before the change
	if len(u.reserved["blue"]) != 1 {
		t.Error("an earlier event gives the reservation back")
	}
	u.Observe(k, was, three)
	if len(u.reserved["blue"]) != 0 || u.used["blue"]["ports"] != 3 {
		t.Errorf("after the change, %v is reserved and %v used", u.reserved["blue"], u.used["blue"])
	}
}
