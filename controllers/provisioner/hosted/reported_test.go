package hosted

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

func TestReported(t *testing.T) {
	const (
		yes = metav1.ConditionTrue
		no  = metav1.ConditionFalse
	)
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(tenancyv1alpha1.ConditionReady, status, reason, message)
	}
	awake := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(tenancyv1alpha1.ConditionAwake, status, reason, message)
	}
	morning := time.Date(2026, 11, 24, 6, 0, 0, 0, time.UTC)
	served := provisioner.ControlPlane{Ready: true, Endpoint: "https://red.example:6443", PodEndpoint: "https://10.0.0.1:443", Version: "v1.36.3"}

	type conditions []metav1.Condition
	for name, c := range map[string]struct {
		conditions conditions
		wakeTime   *metav1.Time
		want       provisioner.ControlPlane
		failure    *provisioner.Failure
	}{
		"nothing": {nil, nil, provisioner.ControlPlane{Message: awaited}, nil},
		"ready":   {conditions{ready(yes, "Ready", "Serves")}, nil, served, nil},
		"starting": {
			conditions{ready(no, "Starting", "The control plane is starting")}, nil,
			provisioner.ControlPlane{Message: "The control plane is starting"}, nil,
		},
		"failed": {
			conditions{ready(no, "UnsupportedVersion", "Not that one")}, nil,
			provisioner.ControlPlane{}, &provisioner.Failure{Reason: "UnsupportedVersion", Message: "Not that one"},
		},
		"failed without a message": {
			conditions{ready(metav1.ConditionUnknown, "StartFailed", "")}, nil,
			provisioner.ControlPlane{}, &provisioner.Failure{Reason: "StartFailed", Message: "StartFailed"},
		},
		"asleep": {
			conditions{ready(no, "Asleep", "Sleeps"), awake(no, "Idle", "Not used")}, new(metav1.NewTime(morning)),
			provisioner.ControlPlane{
				Message: "Sleeps",
				Sleep:   &provisioner.Sleep{Asleep: true, Reason: "Idle", Message: "Not used", WakeTime: morning},
			}, nil,
		},
		"paused": {
			conditions{ready(no, "Paused", ""), awake(no, "Paused", "By an admin")}, nil,
			provisioner.ControlPlane{Sleep: &provisioner.Sleep{Asleep: true, Paused: true, Reason: "Paused", Message: "By an admin"}}, nil,
		},
		"wrong while asleep": {
			conditions{ready(no, "InvalidSpec", "Wrong"), awake(no, "Idle", "Not used")}, nil,
			provisioner.ControlPlane{Sleep: &provisioner.Sleep{Asleep: true, Reason: "Idle", Message: "Not used"}},
			&provisioner.Failure{Reason: "InvalidSpec", Message: "Wrong"},
		},
		"healthy": {
			conditions{
				ready(yes, "Ready", ""), awake(yes, "Connection", "Woken"),
				condition(tenancyv1alpha1.ConditionWithinLimits, yes, "WithinLimits", "Within"),
				condition(tenancyv1alpha1.ConditionControllersWorking, yes, "ControllersWorking", "Working"),
				condition(tenancyv1alpha1.ConditionExtraSANsValid, yes, "Valid", "All"),
			}, nil,
			func() provisioner.ControlPlane {
				state := served
				state.Sleep = &provisioner.Sleep{Reason: "Connection", Message: "Woken"}
				state.Limits, state.Controllers, state.ExtraSANs = &provisioner.Limits{}, &provisioner.Controllers{}, &provisioner.ExtraSANs{}
				return state
			}(), nil,
		},
		"unhealthy": {
			conditions{
				ready(yes, "Ready", ""),
				condition(tenancyv1alpha1.ConditionWithinLimits, no, "StorageLimitReached", "Full"),
				condition(tenancyv1alpha1.ConditionControllersWorking, no, "ControllersFailing", "namespace: panic"),
				condition(tenancyv1alpha1.ConditionExtraSANsValid, no, "NameTaken", "a.example is taken"),
			}, nil,
			func() provisioner.ControlPlane {
				state := served
				state.Limits = &provisioner.Limits{Reached: "StorageLimitReached", Message: "Full"}
				state.Controllers = &provisioner.Controllers{Failing: "namespace: panic"}
				state.ExtraSANs = &provisioner.ExtraSANs{Rejected: "NameTaken", Message: "a.example is taken"}
				return state
			}(), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reported(&tenancyv1alpha1.HostedControlPlaneStatus{
				Endpoint: served.Endpoint, PodEndpoint: served.PodEndpoint, Version: served.Version,
				Conditions: c.conditions, WakeTime: c.wakeTime,
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.failure, provisioner.AsFailure(err)); diff != "" || (err == nil) != (c.failure == nil) {
				t.Errorf("failed with %v: %s", err, diff)
			}
		})
	}
}
