package virtualcluster

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// tenant makes a VirtualCluster for tests.
func tenant(changes ...func(*tenancyv1alpha1.VirtualCluster)) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "red", Namespace: "tenants", UID: "uid-of-red", Generation: 3},
	}
	for _, change := range changes {
		change(vc)
	}
	return vc
}

func deleted(vc *tenancyv1alpha1.VirtualCluster) {
	vc.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func withSyncing(status metav1.ConditionStatus, reason, message string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Status.Conditions = append(vc.Status.Conditions, syncingCondition(status, reason, message))
	}
}

func syncingCondition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: tenancyv1alpha1.ConditionSyncing, Status: status, Reason: reason, Message: message, ObservedGeneration: 2,
	}
}

// ours are the manager's two conditions.
func ours(control metav1.ConditionStatus, reason, message string, ready metav1.ConditionStatus, readyReason, readyMessage string) []metav1.Condition {
	return []metav1.Condition{
		{Type: tenancyv1alpha1.ConditionControlPlaneReady, Status: control, Reason: reason, Message: message, ObservedGeneration: 3},
		{Type: tenancyv1alpha1.ConditionReady, Status: ready, Reason: readyReason, Message: readyMessage, ObservedGeneration: 3},
	}
}

var (
	serves = outcome{controlPlane: provisioner.ControlPlane{Ready: true, Endpoint: "https://red", Version: "v1.36.3"}}
	broken = outcome{err: errors.New("disk full")}
	faulty = outcome{err: provisioner.Failf(tenancyv1alpha1.ReasonKubeconfigMissing, "make the Secret")}
	silent = outcome{err: provisioner.Failf(tenancyv1alpha1.ReasonUnreachable, "no answer")}
)

func TestStatusOf(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	const served = "The tenant's apiserver serves"
	cases := map[string]struct {
		vc   *tenancyv1alpha1.VirtualCluster
		in   outcome
		want tenancyv1alpha1.VirtualClusterStatus
	}{
		"Starting": {tenant(), outcome{}, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhasePending, Reason: "Starting", Message: "The control plane is starting",
			Conditions: ours(no, "Starting", "The control plane is starting", no, "Starting", "The control plane is starting"),
		}},
		"StartingWithMessage": {
			tenant(), outcome{controlPlane: provisioner.ControlPlane{Message: "Waiting for etcd"}},
			tenancyv1alpha1.VirtualClusterStatus{
				Phase: tenancyv1alpha1.PhasePending, Reason: "Starting", Message: "Waiting for etcd",
				Conditions: ours(no, "Starting", "Waiting for etcd", no, "Starting", "Waiting for etcd"),
			},
		},
		"ServesUnsynced": {tenant(), serves, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseRunning, Endpoint: "https://red", Version: "v1.36.3",
			Reason: "NotSyncing", Message: "The syncer has not reported on this tenant yet",
			Conditions: ours(yes, "Ready", served, no, "NotSyncing", "The syncer has not reported on this tenant yet"),
		}},
		"ServesSynced": {tenant(withSyncing(yes, "Syncing", "fine")), serves, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseRunning, Endpoint: "https://red", Version: "v1.36.3",
			Reason: "Ready", Message: "The tenant can work",
			Conditions: append([]metav1.Condition{syncingCondition(yes, "Syncing", "fine")},
				ours(yes, "Ready", served, yes, "Ready", "The tenant can work")...),
		}},
		"ServesParked": {tenant(withSyncing(no, "IdentityChanged", "ask an admin")), serves, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseRunning, Endpoint: "https://red", Version: "v1.36.3",
			Reason: "IdentityChanged", Message: "ask an admin",
			Conditions: append([]metav1.Condition{syncingCondition(no, "IdentityChanged", "ask an admin")},
				ours(yes, "Ready", served, no, "IdentityChanged", "ask an admin")...),
		}},
		"Failure": {tenant(), faulty, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseError, Reason: "KubeconfigMissing", Message: "make the Secret",
			Conditions: ours(no, "KubeconfigMissing", "make the Secret", no, "KubeconfigMissing", "make the Secret"),
		}},
		"FailureThatMayPass": {tenant(withSyncing(yes, "Syncing", "fine")), silent, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhasePending, Reason: "Unreachable", Message: "no answer",
			Conditions: append([]metav1.Condition{syncingCondition(yes, "Syncing", "fine")},
				ours(no, "Unreachable", "no answer", no, "Unreachable", "no answer")...),
		}},
		"FailedStart": {tenant(), outcome{err: provisioner.Failf(tenancyv1alpha1.ReasonStartFailed, "disk full")}, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhasePending, Reason: "StartFailed", Message: "disk full",
			Conditions: ours(no, "StartFailed", "disk full", no, "StartFailed", "disk full"),
		}},
		"Error": {tenant(), broken, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhasePending, Reason: "StartFailed", Message: "disk full",
			Conditions: ours(no, "StartFailed", "disk full", no, "StartFailed", "disk full"),
		}},
		"Terminating": {tenant(deleted), outcome{waitingFor: "the control plane"}, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseTerminating, Reason: "Terminating", Message: "Waiting until it is gone: the control plane",
			Conditions: ours(no, "Terminating", "Waiting until it is gone: the control plane",
				no, "Terminating", "Waiting until it is gone: the control plane"),
		}},
		"TerminatingWithError": {tenant(deleted), broken, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseTerminating, Reason: "Terminating", Message: "disk full",
			Conditions: ours(no, "Terminating", "disk full", no, "Terminating", "disk full"),
		}},
		"TerminatingWithFailure": {tenant(deleted), faulty, tenancyv1alpha1.VirtualClusterStatus{
			Phase: tenancyv1alpha1.PhaseTerminating, Reason: "KubeconfigMissing", Message: "make the Secret",
			Conditions: ours(no, "KubeconfigMissing", "make the Secret", no, "KubeconfigMissing", "make the Secret"),
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.ObservedGeneration = 3
			before := tc.vc.DeepCopy()
			got := statusOf(tc.vc, tc.in)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.vc); diff != "" {
				t.Errorf("the VirtualCluster was changed: %s", diff)
			}
			tc.vc.Status = got
			if diff := cmp.Diff(got, statusOf(tc.vc, tc.in)); diff != "" {
				t.Errorf("the same outcome gave another status: %s", diff)
			}
		})
	}
}

// TestEndpointIsKept: what is known of a control plane stays known while it is away.
func TestEndpointIsKept(t *testing.T) {
	vc := tenant()
	vc.Status = statusOf(vc, serves)
	got := statusOf(vc, silent)
	if got.Endpoint != "https://red" || got.Version != "v1.36.3" {
		t.Errorf("endpoint %q, version %q", got.Endpoint, got.Version)
	}
}

func TestNextLook(t *testing.T) {
	cases := map[string]struct {
		in   outcome
		want time.Duration
		err  bool
	}{
		"Ready":           {serves, 0, false},
		"ReadyRecheck":    {outcome{controlPlane: provisioner.ControlPlane{Ready: true, RecheckAfter: time.Minute}}, time.Minute, false},
		"Starting":        {outcome{}, progressRetry, false},
		"StartingRecheck": {outcome{controlPlane: provisioner.ControlPlane{RecheckAfter: time.Second}}, time.Second, false},
		"Deleting":        {outcome{waitingFor: "it"}, progressRetry, false},
		"Failure":         {faulty, failureRetry, false},
		"WrappedFailure":  {outcome{err: errors.Join(faulty.err)}, failureRetry, false},
		"Error":           {broken, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := nextLook(tc.in)
			if want := (reconcile.Result{RequeueAfter: tc.want}); got != want || (err != nil) != tc.err {
				t.Errorf("got %v and error %v, want %v and error: %v", got, err, want, tc.err)
			}
		})
	}
}

func TestClip(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"Short":   {"a", "a"},
		"Lines":   {"a\nb", "a; b"},
		"Longest": {strings.Repeat("a", maxMessage), strings.Repeat("a", maxMessage)},
		"Longer":  {strings.Repeat("a", maxMessage+1), strings.Repeat("a", maxMessage-3) + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := clip(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for i := range 4 {
		got := clip(strings.Repeat("a", i) + strings.Repeat("ü", maxMessage))
		if !utf8.ValidString(got) || len(got) > maxMessage {
			t.Errorf("a character was cut: %q, %d bytes", got[len(got)-8:], len(got))
		}
	}
}

func TestNewsBetween(t *testing.T) {
	vc := tenant()
	starting := statusOf(vc, outcome{})
	failed := statusOf(vc, faulty)
	unsynced := statusOf(vc, serves)
	synced := statusOf(tenant(withSyncing(metav1.ConditionTrue, "Syncing", "")), serves)
	gone := statusOf(tenant(deleted), outcome{waitingFor: "it"})
	gone2 := statusOf(tenant(deleted), outcome{waitingFor: "something else"})
	cases := map[string]struct {
		before, after tenancyv1alpha1.VirtualClusterStatus
		want          []string
	}{
		"New":          {tenancyv1alpha1.VirtualClusterStatus{}, starting, []string{"Normal ControlPlaneStarting Provision"}},
		"Same":         {starting, starting, nil},
		"Failed":       {starting, failed, []string{"Warning KubeconfigMissing Provision"}},
		"Mended":       {failed, unsynced, []string{"Normal ControlPlaneReady Provision"}},
		"Synced":       {unsynced, synced, []string{"Normal Ready Provision"}},
		"AllAtOnce":    {starting, synced, []string{"Normal ControlPlaneReady Provision", "Normal Ready Provision"}},
		"SyncerAway":   {synced, unsynced, nil},
		"Deleted":      {synced, gone, []string{"Normal Terminating Remove"}},
		"StillDeleted": {gone, gone2, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, n := range newsBetween(tc.before, tc.after) {
				got = append(got, n.kind+" "+n.reason+" "+n.action)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStatusOfSleep: a control plane that sleeps is ready, and one that is
// paused is not.
func TestStatusOfSleep(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	wakes := time.Unix(2e9, 5)
	was := func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Status.Endpoint, vc.Status.PodEndpoint, vc.Status.Version = "https://red", "https://pods", "v1.36.3"
	}
	sleep := func(s provisioner.Sleep) outcome { return outcome{controlPlane: provisioner.ControlPlane{Sleep: &s}} }
	awake := sleep(provisioner.Sleep{Reason: "Connection", Message: "woken"})
	awake.controlPlane.Ready, awake.controlPlane.Endpoint = true, "https://red"
	failed := sleep(provisioner.Sleep{Reason: "Connection"})
	failed.err = errors.New("disk full")
	for name, tc := range map[string]struct {
		in                     outcome
		phase                  tenancyv1alpha1.Phase
		control, ready, awake  metav1.ConditionStatus
		reason, message, wakes string
	}{
		"Asleep": {
			sleep(provisioner.Sleep{Asleep: true, Reason: "Idle", Message: "not used", WakeTime: wakes}),
			tenancyv1alpha1.PhaseAsleep, yes, yes, no, "Idle", "not used", "2033-05-18T03:33:20Z",
		},
		"Paused": {
			sleep(provisioner.Sleep{Asleep: true, Paused: true, Reason: "Paused", Message: "for good"}),
			tenancyv1alpha1.PhasePaused, no, no, no, "Paused", "for good", "",
		},
		"Awake":    {awake, tenancyv1alpha1.PhaseRunning, yes, yes, yes, "Ready", "The tenant can work", ""},
		"Starting": {sleep(provisioner.Sleep{Reason: "Awake"}), tenancyv1alpha1.PhasePending, no, no, yes, "Starting", "The control plane is starting", ""},
		"Failed":   {failed, tenancyv1alpha1.PhasePending, no, no, "", "StartFailed", "disk full", ""},
	} {
		t.Run(name, func(t *testing.T) {
			vc := tenant(withSyncing(yes, "Asleep", "fine"), was)
			got := statusOf(vc, tc.in)
			status := func(kind string) metav1.ConditionStatus {
				if c := meta.FindStatusCondition(got.Conditions, kind); c != nil {
					return c.Status
				}
				return ""
			}
			if got.Phase != tc.phase || got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("got phase %s, reason %s, message %s", got.Phase, got.Reason, got.Message)
			}
			if status("ControlPlaneReady") != tc.control || status("Ready") != tc.ready || status("Awake") != tc.awake {
				t.Errorf("got conditions %v", got.Conditions)
			}
			if got.Endpoint != "https://red" || !tc.in.controlPlane.Ready && got.PodEndpoint != "https://pods" {
				t.Errorf("the endpoints are lost: %+v", got)
			}
			when := ""
			if got.WakeTime != nil {
				when = got.WakeTime.UTC().Format(time.RFC3339)
			}
			if when != tc.wakes {
				t.Errorf("wakes at %q", when)
			}
		})
	}
}

// TestNewsOfSleep: falling asleep and waking are an event each, and neither is
// a warning.
func TestNewsOfSleep(t *testing.T) {
	status := func(control, awake metav1.ConditionStatus, reason string) tenancyv1alpha1.VirtualClusterStatus {
		return tenancyv1alpha1.VirtualClusterStatus{Conditions: []metav1.Condition{
			{Type: "ControlPlaneReady", Status: control, Reason: reason},
			{Type: "Awake", Status: awake, Reason: reason, Message: "because"},
		}}
	}
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	awake := status(yes, yes, "Ready")
	for name, tc := range map[string]struct {
		before, after tenancyv1alpha1.VirtualClusterStatus
		want          []news
	}{
		"Asleep":  {awake, status(yes, no, "Asleep"), []news{{"Normal", "Asleep", "Sleep", "because"}}},
		"Awake":   {status(yes, no, "Asleep"), awake, []news{{"Normal", "Awake", "Sleep", "because"}}},
		"Paused":  {awake, status(no, no, "Paused"), []news{{"Normal", "Asleep", "Sleep", "because"}}},
		"Nothing": {awake, awake, nil},
		"Invalid": {
			awake, tenancyv1alpha1.VirtualClusterStatus{Conditions: []metav1.Condition{
				{Type: "ControlPlaneReady", Status: yes, Reason: "Ready"},
				{Type: "Awake", Status: yes, Reason: "InvalidSchedule", Message: "never comes"},
			}},
			[]news{{"Warning", "InvalidSchedule", "Sleep", "never comes"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newsBetween(tc.before, tc.after), cmp.AllowUnexported(news{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAvailability(t *testing.T) {
	for name, c := range map[string]struct {
		chosen choice
		err    error
		want   string // status, reason and message; empty for none
	}{
		"not reached": {choice{}, errors.New("list"), ""},
		"offered": {
			choice{"Hosted", "External, Hosted", provisioner.Capabilities{Network: true}}, nil,
			"True ProvisionerAvailable Provisioner Hosted runs the control plane; this manager offers: External, Hosted",
		},
		"offered and failing": {
			choice{"Hosted", "Hosted", provisioner.Capabilities{Network: true}}, provisioner.Failf(tenancyv1alpha1.ReasonNoStore, "no store"),
			"True ProvisionerAvailable Provisioner Hosted runs the control plane; this manager offers: Hosted",
		},
		"without a network": {
			choice{"Magic", "Magic", provisioner.Capabilities{}}, nil,
			"True ProvisionerAvailable Provisioner Magic runs the control plane; this manager offers: Magic. " +
				"The apiserver does not reach pods of the super cluster, such as the tenant's webhooks",
		},
		"not offered": {
			choice{"Native", "Hosted", provisioner.Capabilities{}}, provisioner.Failf(tenancyv1alpha1.ReasonProvisionerUnavailable, "it has: Hosted"),
			"False ProvisionerUnavailable it has: Hosted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(tenant(), outcome{chosen: c.chosen, err: c.err})
			if status.Provisioner != c.chosen.provisioner {
				t.Errorf("status.provisioner is %q", status.Provisioner)
			}
			got := ""
			if is := meta.FindStatusCondition(status.Conditions, tenancyv1alpha1.ConditionProvisionerAvailable); is != nil {
				got = strings.Join([]string{string(is.Status), is.Reason, is.Message}, " ")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
