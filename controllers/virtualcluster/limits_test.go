package virtualcluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// servesWith is a control plane that serves, with limits.
func servesWith(limits *provisioner.Limits) outcome {
	o := serves
	o.controlPlane.Limits = limits
	return o
}

func TestWithinLimits(t *testing.T) {
	full := &provisioner.Limits{Reached: tenancyv1alpha1.ReasonStorageLimitReached, Message: "64Mi of\n64Mi"}
	for name, test := range map[string]struct {
		limits *provisioner.Limits
		want   string
	}{
		"none":    {nil, ""},
		"within":  {&provisioner.Limits{}, "True WithinLimits The control plane is within its limits"},
		"reached": {full, "False StorageLimitReached 64Mi of; 64Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := meta.FindStatusCondition(statusOf(tenant(), servesWith(test.limits)).Conditions, tenancyv1alpha1.ConditionWithinLimits); c != nil {
				got = strings.Join([]string{string(c.Status), c.Reason, c.Message}, " ")
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	vc := tenant()
	vc.Status = statusOf(vc, servesWith(full))
	vc.Status = statusOf(vc, outcome{})
	if !meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionWithinLimits) {
		t.Error("the condition is lost while the control plane does not serve")
	}
	if !meta.IsStatusConditionPresentAndEqual(vc.Status.Conditions, tenancyv1alpha1.ConditionReady, metav1.ConditionFalse) {
		t.Error("the tenant is ready")
	}
}

// TestControllersWorking: the condition, and an event for each change.
func TestControllersWorking(t *testing.T) {
	status := func(failing string) tenancyv1alpha1.VirtualClusterStatus {
		o := serves
		o.controlPlane.Controllers = &provisioner.Controllers{Failing: failing}
		return statusOf(tenant(), o)
	}
	working, failing := status(""), status("job-controller: panic")
	for name, test := range map[string]struct {
		before, after tenancyv1alpha1.VirtualClusterStatus
		want          []string
	}{
		"at first": {statusOf(tenant(), serves), working, nil},
		"failing":  {working, failing, []string{"Warning ControllersFailing job-controller: panic"}},
		"still":    {failing, status("job-controller: another"), nil},
		"over":     {failing, working, []string{"Normal ControllersWorking The controllers of the control plane work"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, newsAsText(test.before, test.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if !meta.IsStatusConditionFalse(failing.Conditions, tenancyv1alpha1.ConditionControllersWorking) {
		t.Error("the condition is not false")
	}
}

// newsAsText returns the kind, the reason and the message of each piece of news.
func newsAsText(before, after tenancyv1alpha1.VirtualClusterStatus) []string {
	var texts []string
	for _, n := range newsBetween(before, after) {
		texts = append(texts, n.kind+" "+n.reason+" "+n.message)
	}
	return texts
}

// TestNewsOfLimits: a limit that is reached, and the end of it. Changes of the
// message alone are none.
func TestNewsOfLimits(t *testing.T) {
	status := func(reached, message string) tenancyv1alpha1.VirtualClusterStatus {
		return statusOf(tenant(), servesWith(&provisioner.Limits{Reached: reached, Message: message}))
	}
	within, full, fuller := status("", ""), status("StorageLimitReached", "a"), status("StorageLimitReached", "b")
	throttled := status("RequestsThrottled", "a")
	for name, test := range map[string]struct {
		before, after tenancyv1alpha1.VirtualClusterStatus
		want          []string
	}{
		"at first": {statusOf(tenant(), serves), within, nil},
		"reached":  {within, full, []string{"Warning StorageLimitReached a"}},
		"still":    {full, fuller, nil},
		"another":  {full, throttled, []string{"Warning RequestsThrottled a"}},
		"over":     {throttled, within, []string{"Normal WithinLimits The control plane is within its limits"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, newsAsText(test.before, test.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
