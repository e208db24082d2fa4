package stored

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestCondition(t *testing.T) {
	const full = "100B of 100B and 2 of any number of objects are stored: writes that need more are rejected"
	before := func(generation int64, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{
			Type: tenancyv1alpha1.ConditionWithinLimits, Status: status, ObservedGeneration: generation,
			Reason: tenancyv1alpha1.ReasonStorageLimitReached, Message: "as before",
		}}
	}
	for name, tc := range map[string]struct {
		report  report
		before  []metav1.Condition
		message string // of a limit that is reached; empty for none
	}{
		"room":                       {report: report{stored: Amount{1, 99}, most: Amount{2, 100}}},
		"no limits":                  {report: report{stored: Amount{1, 99}}},
		"as many bytes as allowed":   {report: report{stored: Amount{2, 100}, most: Amount{0, 100}}, message: full},
		"as many objects as allowed": {report: report{stored: Amount{2, 1}, most: Amount{2, 0}}, message: "1B of any number of and 2 of 2 objects are stored"},
		"more than a lower limit":    {report: report{stored: Amount{3, 1}, most: Amount{2, 100}}, message: "1B of 100B and 3 of 2 objects"},
		"a write was rejected":       {report: report{stored: Amount{1, 60}, most: Amount{2, 100}, rejected: true}, message: "60B of 100B and 1 of 2"},
		"the message stays":          {report: report{stored: Amount{3, 1}, most: Amount{2, 0}}, before: before(3, metav1.ConditionFalse), message: "as before"},
		"unless the spec is another": {report: report{stored: Amount{2, 100}, most: Amount{0, 100}}, before: before(2, metav1.ConditionFalse), message: full},
		"or the limit was not":       {report: report{stored: Amount{2, 100}, most: Amount{0, 100}}, before: before(3, metav1.ConditionTrue), message: full},
		"it is not reached any more": {report: report{most: Amount{2, 100}}, before: before(3, metav1.ConditionFalse)},
	} {
		t.Run(name, func(t *testing.T) {
			vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			vc.Status.Conditions = tc.before
			got := tc.report.condition(vc)
			status, reason, message := metav1.ConditionTrue, tenancyv1alpha1.ReasonWithinLimits, "The tenant is within"
			if tc.message != "" {
				status, reason, message = metav1.ConditionFalse, tenancyv1alpha1.ReasonStorageLimitReached, tc.message
			}
			if got.Status != status || got.Reason != reason || !strings.HasPrefix(got.Message, message) || got.ObservedGeneration != 3 {
				t.Errorf("got %+v, want %s, %s, %q", got, status, reason, message)
			}
		})
	}
}

// TestReportOf: a rejection is reported for a minute.
func TestReportOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, most := NewUsage(), Amount{Objects: 1, Bytes: 100}
		if got := u.reportOf("red", most); got != (report{most: most}) {
			t.Errorf("before the first object: %+v", got)
		}
		u.observe("red", "a", "1", Amount{}, Amount{Objects: 1, Bytes: 40})
		if err := u.Reserve("red", create("b", 1), most); err == nil {
			t.Error("the second object is allowed")
		}
		want := report{stored: Amount{Objects: 1, Bytes: 40}, most: most, rejected: true}
		if got := u.reportOf("red", most); got != want {
			t.Errorf("after a rejection: %+v, want %+v", got, want)
		}
		if u.reportOf("blue", most).rejected {
			t.Error("that of another tenant is reported")
		}
		time.Sleep(calm)
		if u.reportOf("red", most).rejected {
			t.Error("the rejection is still reported")
		}
	})
}

// TestMetrics: a tenant has series while it is reported.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	red := report{stored: Amount{Objects: 1, Bytes: 2}, most: Amount{Objects: 3, Bytes: 4}}
	m.show(map[string]report{"red": red, "blue": red})
	if n := testutil.CollectAndCount(registry); n != 8 {
		t.Errorf("there are %d series", n)
	}
	m.show(map[string]report{"red": red})
	for name, want := range map[string]float64{"objects": 1, "bytes": 2, "limit_objects": 3, "limit_bytes": 4} {
		vec := map[string]*prometheus.GaugeVec{"objects": m.objects, "bytes": m.bytes, "limit_objects": m.limitObjects, "limit_bytes": m.limitBytes}[name]
		if got := testutil.ToFloat64(vec); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	m.show(nil)
	if n := testutil.CollectAndCount(registry); n != 0 {
		t.Errorf("%d series are left", n)
	}
}
