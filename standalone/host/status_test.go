package host

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	contract "github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// summaryOf returns the conditions of a status in short.
func summaryOf(status tenancyv1alpha1.HostedControlPlaneStatus) map[string]string {
	summary := map[string]string{}
	for _, c := range status.Conditions {
		summary[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
	}
	return summary
}

func TestReport(t *testing.T) {
	ready := contract.ControlPlane{Ready: true, Endpoint: "https://a:1", PodEndpoint: "https://b:2", Version: "v1.36.3"}
	due := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		state contract.ControlPlane
		err   error
		want  map[string]string
	}{
		"ready": {ready, nil, map[string]string{"Ready": "True Ready The control plane serves"}},
		"starting": {
			contract.ControlPlane{Message: "The control plane is starting"}, nil,
			map[string]string{"Ready": "False Starting The control plane is starting"},
		},
		"a spec to correct": {
			contract.ControlPlane{}, contract.Failf("InvalidSpec", "no network"), map[string]string{"Ready": "False InvalidSpec no network"},
		},
		"a failure": {contract.ControlPlane{}, errors.New("no port"), map[string]string{"Ready": "False StartFailed no port"}},
		"limits": {
			contract.ControlPlane{Ready: true, Limits: &contract.Limits{Reached: "StorageLimitReached", Message: "64Mi"}}, nil,
			map[string]string{"Ready": "True Ready The control plane serves", "WithinLimits": "False StorageLimitReached 64Mi"},
		},
		"within limits, a controller fails": {
			contract.ControlPlane{Ready: true, Limits: &contract.Limits{}, Controllers: &contract.Controllers{Failing: "jobs"}}, nil,
			map[string]string{
				"Ready": "True Ready The control plane serves", "WithinLimits": "True WithinLimits ",
				"ControllersWorking": "False ControllersFailing jobs",
			},
		},
		"asleep": {
			contract.ControlPlane{Sleep: &contract.Sleep{Asleep: true, Reason: "Idle", Message: "not used", WakeTime: due}}, nil,
			map[string]string{"Ready": "False Asleep not used", "Awake": "False Idle not used"},
		},
		"paused": {
			contract.ControlPlane{Sleep: &contract.Sleep{Asleep: true, Paused: true, Reason: "Paused", Message: "by the spec"}}, nil,
			map[string]string{"Ready": "False Asleep by the spec", "Awake": "False Paused by the spec"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := tenancyv1alpha1.HostedControlPlaneStatus{}
			report(&status, 7, test.state, test.err)
			g.Expect(summaryOf(status)).To(Equal(test.want))
			g.Expect(status.Conditions).To(HaveEach(HaveField("ObservedGeneration", int64(7))))
			g.Expect(status.Endpoint).To(Equal(test.state.Endpoint))
			if test.state.Sleep != nil && !test.state.Sleep.WakeTime.IsZero() {
				g.Expect(status.WakeTime.Time).To(Equal(due))
			} else {
				g.Expect(status.WakeTime).To(BeNil())
			}
		})
	}
}

// TestReportKeepsTheAddress: clients of a control plane that restarts use the same
// address again.
func TestReportKeepsTheAddress(t *testing.T) {
	g := NewWithT(t)
	status := tenancyv1alpha1.HostedControlPlaneStatus{Endpoint: "https://a:1", Version: "v1.36.3"}
	report(&status, 1, contract.ControlPlane{Message: "The control plane is starting"}, nil)
	g.Expect(status.Endpoint).To(Equal("https://a:1"))
	report(&status, 1, contract.ControlPlane{}, errors.New(strings.Repeat("ü", maxMessage)))
	g.Expect(len(status.Conditions[0].Message)).To(And(BeNumerically("<=", maxMessage), BeNumerically(">", maxMessage-4)))
}

func TestIsTakingOver(t *testing.T) {
	starting, ready := contract.ControlPlane{}, contract.ControlPlane{Ready: true}
	asleep := contract.ControlPlane{Sleep: &contract.Sleep{Asleep: true}}
	for name, test := range map[string]struct {
		host   string
		served metav1.ConditionStatus
		state  contract.ControlPlane
		err    error
		want   bool
	}{
		"of another replica":           {"a", metav1.ConditionTrue, starting, nil, true},
		"of this replica":              {"b", metav1.ConditionTrue, starting, nil, false},
		"that was not served":          {"a", metav1.ConditionFalse, starting, nil, false},
		"that is served now":           {"a", metav1.ConditionTrue, ready, nil, false},
		"that sleeps now":              {"a", metav1.ConditionTrue, asleep, nil, false},
		"that cannot be started":       {"a", metav1.ConditionTrue, starting, errors.New("no port"), false},
		"of a replica without a name":  {"", metav1.ConditionFalse, starting, nil, false},
		"of which nothing is reported": {"", metav1.ConditionUnknown, starting, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			status := tenancyv1alpha1.HostedControlPlaneStatus{Host: test.host}
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: tenancyv1alpha1.ConditionReady, Status: test.served})
			NewWithT(t).Expect(isTakingOver(status, "b", test.state, test.err)).To(Equal(test.want))
		})
	}
}

func TestHealthOf(t *testing.T) {
	for name, test := range map[string]struct {
		state  hosted.StoreState
		reason string
	}{
		"no problem": {hosted.StoreState{Bytes: 5}, tenancyv1alpha1.ReasonHealthy},
		"full":       {hosted.StoreState{Problems: []string{"memberID:1 alarm:NOSPACE "}}, tenancyv1alpha1.ReasonStoreFull},
		"no leader":  {hosted.StoreState{Problems: []string{"etcdserver: no leader"}}, tenancyv1alpha1.ReasonStoreUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			got := healthOf(test.state)
			if got.reason != test.reason || got.bytes != test.state.Bytes || got.message == "" {
				t.Errorf("got %+v, want %s", got, test.reason)
			}
		})
	}
}
