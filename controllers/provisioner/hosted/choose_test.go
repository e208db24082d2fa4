package hosted

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const gibibyte = 1 << 30

// makeStore makes a healthy store of default capacity, with changes.
func makeStore(name string, changes ...func(*tenancyv1alpha1.ControlPlaneStore)) tenancyv1alpha1.ControlPlaneStore {
	s := tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: name}}
	withHealth(metav1.ConditionTrue, tenancyv1alpha1.ReasonHealthy)(&s)
	for _, change := range changes {
		change(&s)
	}
	return s
}

func withHealth(status metav1.ConditionStatus, reason string) func(*tenancyv1alpha1.ControlPlaneStore) {
	return func(s *tenancyv1alpha1.ControlPlaneStore) {
		s.Status.Conditions = []metav1.Condition{{Type: tenancyv1alpha1.ConditionStoreHealthy, Status: status, Reason: reason}}
	}
}

func withBytes(bytes int64) func(*tenancyv1alpha1.ControlPlaneStore) {
	return func(s *tenancyv1alpha1.ControlPlaneStore) { s.Status.Bytes = bytes }
}

func withCapacity(controlPlanes int32, storage string) func(*tenancyv1alpha1.ControlPlaneStore) {
	return func(s *tenancyv1alpha1.ControlPlaneStore) {
		s.Spec.Capacity.ControlPlanes = &controlPlanes
		s.Spec.Capacity.Storage = new(resource.MustParse(storage))
	}
}

func unscheduled(s *tenancyv1alpha1.ControlPlaneStore) { s.Spec.Unschedulable = true }

func unreported(s *tenancyv1alpha1.ControlPlaneStore) { s.Status.Conditions = nil }

func deleted(s *tenancyv1alpha1.ControlPlaneStore) { s.DeletionTimestamp = new(metav1.Now()) }

func TestChoose(t *testing.T) {
	unreachable := withHealth(metav1.ConditionFalse, tenancyv1alpha1.ReasonStoreUnreachable)
	type stores []tenancyv1alpha1.ControlPlaneStore
	for name, c := range map[string]struct {
		stores  stores
		placed  map[string]int64
		want    string // the store
		waiting string
		err     string
	}{
		"none":                    {nil, nil, "", "", "create one"},
		"one":                     {stores{makeStore("a")}, nil, "a", "", ""},
		"fewest control planes":   {stores{makeStore("a"), makeStore("b")}, map[string]int64{"a": 2, "b": 1}, "b", "", ""},
		"least part of capacity":  {stores{makeStore("a", withCapacity(10, "8Gi")), makeStore("b")}, map[string]int64{"a": 1, "b": 2}, "b", "", ""},
		"then fewest bytes":       {stores{makeStore("a", withBytes(2)), makeStore("b", withBytes(1))}, nil, "b", "", ""},
		"then part of storage":    {stores{makeStore("a", withBytes(gibibyte)), makeStore("b", withBytes(gibibyte), withCapacity(5000, "9Gi"))}, nil, "b", "", ""},
		"control planes first":    {stores{makeStore("a", withBytes(6*gibibyte)), makeStore("b")}, map[string]int64{"b": 1}, "a", "", ""},
		"then by name":            {stores{makeStore("b"), makeStore("a"), makeStore("c")}, nil, "a", "", ""},
		"unschedulable":           {stores{makeStore("a", unscheduled), makeStore("b")}, map[string]int64{"b": 9}, "b", "", ""},
		"unreachable":             {stores{makeStore("a", unreachable), makeStore("b")}, map[string]int64{"b": 9}, "b", "", ""},
		"being deleted":           {stores{makeStore("a", deleted), makeStore("b")}, map[string]int64{"b": 9}, "b", "", ""},
		"not reported":            {stores{makeStore("a", unreported), makeStore("b")}, map[string]int64{"b": 9}, "b", "", ""},
		"at capacity":             {stores{makeStore("a", withCapacity(2, "8Gi"))}, map[string]int64{"a": 2}, "", "", "a has 2 control planes, and takes 2"},
		"below capacity":          {stores{makeStore("a", withCapacity(2, "8Gi"))}, map[string]int64{"a": 1}, "a", "", ""},
		"above capacity":          {stores{makeStore("a", withCapacity(2, "8Gi"))}, map[string]int64{"a": 3}, "", "", "a has 3 control planes, and takes 2"},
		"default capacity":        {stores{makeStore("a")}, map[string]int64{"a": defaultControlPlanes}, "", "", "takes 5000"},
		"more than 80 % of bytes": {stores{makeStore("a", withCapacity(9, "100Mi"), withBytes(80<<20+1))}, nil, "", "", "more than 80 % of its storage"},
		"80 % of bytes":           {stores{makeStore("a", withCapacity(9, "100Mi"), withBytes(80<<20))}, nil, "a", "", ""},
		"all unhealthy":           {stores{makeStore("a", unreachable)}, nil, "", "", "a is not healthy: Unreachable"},
		"unknown health":          {stores{makeStore("a", withHealth(metav1.ConditionUnknown, "Checking"))}, nil, "", "", "a is not healthy: Checking"},
		"waits for a report":      {stores{makeStore("a", unreported), makeStore("b", unreachable)}, nil, "", "store a, which was not checked", ""},
		"waits for none": {
			stores{makeStore("a", unreported, unscheduled), makeStore("b", unreported, withCapacity(1, "1Gi"))},
			map[string]int64{"b": 1}, "", "", "(a is unschedulable; b has 1 control planes, and takes 1)",
		},
		"names three": {
			stores{makeStore("e", unscheduled), makeStore("d", unscheduled), makeStore("c", unscheduled), makeStore("b", unscheduled), makeStore("a", unscheduled)},
			nil, "", "", "(a is unschedulable; b is unschedulable; c is unschedulable; and 2 more)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, waiting, err := choose(c.stores, c.placed)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if (waiting == "") != (c.waiting == "") || !strings.Contains(strings.ToLower(waiting), c.waiting) {
				t.Errorf("waiting is %q, want %q", waiting, c.waiting)
			}
			failure := provisioner.AsFailure(err)
			if (failure == nil) != (c.err == "") {
				t.Fatalf("failed with %v, want %q", err, c.err)
			}
			if failure != nil && (failure.Reason != tenancyv1alpha1.ReasonNoStore || !strings.Contains(failure.Message, c.err)) {
				t.Errorf("failed with %s: %s, want %q", failure.Reason, failure.Message, c.err)
			}
		})
	}
}
