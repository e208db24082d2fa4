package command

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestUsage: a command line that is not valid sends nothing, has the exit code
// of its own, and names the next step.
func TestUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	cases := map[string]struct {
		args []string
		want string
	}{
		"UnknownVerb":      {[]string{"lsit"}, `unknown command "lsit"`},
		"UnknownFlag":      {[]string{"list", "--color"}, "unknown flag: --color"},
		"NoName":           {[]string{"create"}, "accepts 1 arg(s), received 0"},
		"TooManyNames":     {[]string{"kubeconfig", "red", "blue"}, "accepts 1 arg(s), received 2"},
		"Format":           {[]string{"list", "-o", "xml"}, "--output: unable to match a printer"},
		"FormatOfVersion":  {[]string{"version", "-o", "wide"}, "--output: unable to match a printer"},
		"Selector":         {[]string{"list", "-l", "a=="}, ""},
		"DryRun":           {[]string{"create", "red", "--dry-run=maybe"}, `--dry-run: "maybe" is none of none, client and server`},
		"WaitForNothing":   {[]string{"create", "red", "--dry-run=client", "--wait"}, "creates nothing"},
		"Timeout":          {[]string{"create", "red", "--wait", "--timeout=0s"}, "--timeout: 0s is not more than 0"},
		"Duration":         {[]string{"kubeconfig", "red", "--duration=9m"}, "--duration: 9m0s is less than 10m0s"},
		"MergeOrFile":      {[]string{"kubeconfig", "red", "--merge", "--file=x"}, "exclude each other"},
		"ConnectDuration":  {[]string{"connect", "red", "--duration=1s"}, "--duration"},
		"CommandNoDash":    {[]string{"connect", "red", "kubectl"}, "expected one name"},
		"WakeFor":          {[]string{"wake", "red", "--for=-1h"}, "--for: -1h0m0s is less than 0"},
		"SyncObject":       {[]string{"sync", "red", "web"}, `"web" is not KIND/NAME`},
		"SyncNamespace":    {[]string{"sync", "red", "pod/shop/web"}, "is not KIND/NAME"},
		"DeleteBlindly":    {[]string{"delete", "red"}, "the deletion cannot be confirmed"},
		"DoctorTimeout":    {[]string{"doctor", "--timeout=0s"}, "--timeout and --probe-timeout have to be more than 0"},
		"DoctorFormat":     {[]string{"doctor", "-o", "wide"}, "--output: unable to match a printer"},
		"UninstallTenants": {[]string{"uninstall", "--yes"}, "--purge is missing"},
		"UninstallBlindly": {[]string{"uninstall", "--purge"}, "the deletion cannot be confirmed"},
		"UninstallTimeout": {[]string{"uninstall", "--purge", "--yes", "--timeout=0s"}, "--timeout: 0s is not more than 0"},
		"ProjectVerb":      {[]string{"project", "choose"}, `unknown command "choose"`},
		"ProjectFormat":    {[]string{"project", "list", "-o", "xml"}, "--output: unable to match a printer"},
		"ProjectNames":     {[]string{"project", "use", "shop", "store"}, "accepts 1 arg(s), received 2"},
		"VersionArguments": {[]string{"version", "red"}, `unknown command "red"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			code := Main(t.Context(), streams, tc.args)
			if code != exit.Usage && name != "Selector" {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(errOut.String(), tc.want) || strings.Count(strings.TrimSpace(errOut.String()), "\n") < 1 && tc.want != "" {
				t.Errorf("printed %q, want %q and the next step", errOut, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestWithoutCluster: commands that need no cluster work without one.
func TestWithoutCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	for _, args := range [][]string{
		{}, {"version", "--client"}, {"version", "--client", "-o", "json"}, {"create", "red", "--dry-run=client", "-o", "yaml"}, {"completion", "bash"},
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		if code := Main(t.Context(), streams, args); code != exit.Done || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %s", args, code, errOut)
		}
	}
}

// TestCompletion: the shell completes flags of all verbs without a cluster.
func TestCompletion(t *testing.T) {
	file := t.TempDir() + "/config"
	config := clientcmdapi.NewConfig()
	config.Contexts["here"], config.Contexts["there"] = clientcmdapi.NewContext(), clientcmdapi.NewContext()
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for want, args := range map[string][]string{
		"here\nthere\n":          {"list", "--context", ""},
		"json\nyaml\n":           {"doctor", "-o", ""},
		"none\nclient\nserver\n": {"create", "--dry-run", ""},
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		code := Main(t.Context(), streams, append([]string{"__complete"}, args...))
		if code != exit.Done || !strings.HasPrefix(out.String(), want) || strings.Contains(errOut.String(), "error") {
			t.Errorf("%v: exit code %d, printed %q, %s", args, code, out, errOut)
		}
	}
}

// TestErrorsAreEscaped: an error can quote a tenant.
func TestErrorsAreEscaped(t *testing.T) {
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	Main(t.Context(), streams, []string{"\x1b[2Jlist"})
	if strings.Contains(errOut.String(), "\x1b") {
		t.Errorf("printed %q", errOut)
	}
}

func TestReport(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"None":     {nil, ""},
		"Plain":    {errors.New("it broke"), "error: it broke\n"},
		"Next":     {exit.With(errors.New("it broke"), "Fix it"), "error: it broke\nFix it\n"},
		"CodeOnly": {&exit.Error{Code: 42}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			report(out, tc.err)
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", out, tc.want)
			}
		})
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func virtualCluster(conditions ...metav1.Condition) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{Status: tenancyv1alpha1.VirtualClusterStatus{Conditions: conditions}}
}

func TestProgress(t *testing.T) {
	starting := condition("ControlPlaneReady", metav1.ConditionFalse, "Starting", "it\nstarts")
	ready := condition("ControlPlaneReady", metav1.ConditionTrue, "Ready", "")
	syncing := condition("Syncing", metav1.ConditionUnknown, "NotSyncing", "")
	cases := map[string]struct {
		before, after *tenancyv1alpha1.VirtualCluster
		want          []string
	}{
		"First":   {nil, virtualCluster(starting), []string{`ControlPlaneReady=False (Starting): it\nstarts`}},
		"Same":    {virtualCluster(starting), virtualCluster(starting), nil},
		"Changed": {virtualCluster(starting, syncing), virtualCluster(ready, syncing), []string{"ControlPlaneReady=True (Ready)"}},
		"Added":   {virtualCluster(ready), virtualCluster(ready, syncing), []string{"Syncing=Unknown (NotSyncing)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, progress(tc.before, tc.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnready(t *testing.T) {
	ready := condition("Ready", metav1.ConditionFalse, "Starting", "")
	cause := condition("ControlPlaneReady", metav1.ConditionFalse, "KubeconfigMissing", "create it")
	if got := unready(virtualCluster(ready, cause)); got != "ControlPlaneReady=False (KubeconfigMissing): create it" {
		t.Error(got)
	}
	if got := unready(virtualCluster()); !strings.Contains(got, "vc-manager") {
		t.Error(got)
	}
}

func TestSpecFlags(t *testing.T) {
	cases := map[string]struct {
		flags specFlags
		want  tenancyv1alpha1.VirtualClusterSpec
	}{
		"Empty": {specFlags{}, tenancyv1alpha1.VirtualClusterSpec{}},
		"External": {specFlags{provisioner: "External", secret: "red"}, tenancyv1alpha1.VirtualClusterSpec{
			Provisioner: "External", External: &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "red"},
		}},
		"Hosted": {specFlags{isolation: "Shared", sleepAfter: 600, weight: 3, kubernetesVersion: "1.36", serviceCIDR: "10.96.0.0/16"},
			tenancyv1alpha1.VirtualClusterSpec{
				Weight: 3, KubernetesVersion: "1.36", ServiceCIDR: "10.96.0.0/16",
				ControlPlane: &tenancyv1alpha1.ControlPlaneSpec{
					Isolation: "Shared", Sleep: &tenancyv1alpha1.SleepSpec{AfterIdleSeconds: new(int32(600))},
				},
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.flags.virtualClusterSpec()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWake(t *testing.T) {
	vc := virtualCluster()
	vc.Spec.Paused = true
	wake(vc, time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600)))
	if vc.Spec.Paused || vc.Annotations[names.WokenAt] != "2026-01-02T03:04:05Z" {
		t.Error(vc.Spec.Paused, vc.Annotations)
	}
}

func TestConfirm(t *testing.T) {
	vc := virtualCluster()
	vc.Name, vc.Namespace = "red", "team"
	for input, confirmed := range map[string]bool{"red\n": true, "red": true, "blue\n": false, "\n": false, "": false, "y\n": false} {
		streams, in, _, _ := genericiooptions.NewTestIOStreams()
		in.WriteString(input)
		o := deleteOptions{platform: newPlatform(streams)}
		if err := o.confirm(vc); (err == nil) != confirmed {
			t.Errorf("%q: %v", input, err)
		}
	}
}

func TestUsageOf(t *testing.T) {
	pod := func(phase corev1.PodPhase, cpu string) corev1.Pod {
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return corev1.Pod{
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	got := usageOf(3, []corev1.Pod{pod(corev1.PodRunning, "100m"), pod(corev1.PodRunning, "1"), pod("", "1"), pod(corev1.PodSucceeded, "8")})
	if diff := cmp.Diff(map[string]int{"Running": 2, "Pending": 1, "Succeeded": 1}, got.Pods); diff != "" || got.Namespaces != 3 {
		t.Error(diff)
	}
	if cpu := got.Requests[corev1.ResourceCPU]; cpu.String() != "2100m" {
		t.Error(cpu.String())
	}
}

func TestLastEvents(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	events := []corev1.Event{
		{Reason: "C", LastTimestamp: at(3)},
		{Reason: "A", EventTime: metav1.MicroTime(at(1))},
		{Reason: "D", EventTime: metav1.MicroTime(at(0)), Series: &corev1.EventSeries{Count: 4, LastObservedTime: metav1.MicroTime(at(4))}},
		{Reason: "B", ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(2)}},
	}
	var got []string
	for _, e := range lastEvents(events, 3) {
		got = append(got, e.Reason)
	}
	if diff := cmp.Diff([]string{"B", "C", "D"}, got); diff != "" {
		t.Error(diff)
	}
	if len(lastEvents(events, 0)) != 0 || len(lastEvents(events, -1)) != 0 {
		t.Error("events in spite of --events=0")
	}
}

// TestDescriptionIsEscaped: a message of a tenant adds no lines and no columns.
func TestDescriptionIsEscaped(t *testing.T) {
	vc := virtualCluster(condition("Synced", metav1.ConditionFalse, "ObjectsPending", "a\nEvents: <none>\tb"))
	d := description{VirtualCluster: vc, Events: []event{{Reason: "x", Message: "a\nConditions:"}}}
	out := &bytes.Buffer{}
	if err := d.write(out, time.Now()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "Events:") != 3 || strings.Count(out.String(), "\nEvents:") != 1 || strings.Count(out.String(), "\nConditions:") != 1 {
		t.Error(out)
	}
}

const key = "team-abcdef-red"

// copied returns an object of the super cluster that is the copy of the
// tenant's object with a UID.
func copied(cluster, uid string, written time.Time) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAnnotations(map[string]string{names.Cluster: cluster, names.UID: uid})
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Time: new(metav1.NewTime(written))}, {Time: new(metav1.NewTime(written.Add(time.Hour))), Subresource: "status"},
	})
	return obj
}

func TestVerdict(t *testing.T) {
	then := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	own := &unstructured.Unstructured{Object: map[string]any{}}
	own.SetUID("1")
	deleting := own.DeepCopy()
	deleting.SetDeletionTimestamp(new(metav1.NewTime(then)))
	class := own.DeepCopy()
	class.SetLabels(map[string]string{names.FromSuper: "true"})
	report := func(reason string, after time.Duration) []event {
		return []event{{Reason: reason, Message: "m", Last: metav1.NewTime(then.Add(after))}}
	}
	syncing := virtualCluster(condition("Syncing", metav1.ConditionTrue, "Ready", ""))
	cases := map[string]struct {
		sides sides
		vc    *tenancyv1alpha1.VirtualCluster
		want  string
	}{
		"Synced":          {sides{key, own, copied(key, "1", then), nil}, syncing, outcomeSynced},
		"Rejected":        {sides{key, own, nil, report("SyncRejected", 0)}, syncing, outcomeRejected},
		"Quota":           {sides{key, own, nil, report("QuotaExceeded", 0)}, syncing, outcomeRejected},
		"Blocked":         {sides{key, own, nil, report("SyncBlocked", 0)}, syncing, outcomeBlockedOn},
		"Newest":          {sides{key, own, nil, append(report("SyncBlocked", 0), report("SyncFailed", 1)...)}, syncing, outcomeFailed},
		"OtherEvent":      {sides{key, own, nil, report("ChangeReverted", 0)}, syncing, outcomeNotCopied},
		"NoEvent":         {sides{key, own, nil, nil}, syncing, outcomeNotCopied},
		"UpdateRejected":  {sides{key, own, copied(key, "1", then), report("SyncRejected", time.Minute)}, syncing, outcomeRejected},
		"RejectedBefore":  {sides{key, own, copied(key, "1", then), report("SyncRejected", -time.Minute)}, syncing, outcomeSynced},
		"Previous":        {sides{key, own, copied(key, "0", then), nil}, syncing, outcomeWaiting},
		"Foreign":         {sides{key, own, copied("team-123456-blue", "1", then), nil}, syncing, outcomeForeign},
		"OfThePlatform":   {sides{key, own, copied("", "", then), nil}, syncing, outcomeForeign},
		"Deleting":        {sides{key, deleting, copied(key, "1", then), nil}, syncing, outcomeDeleting},
		"Vanished":        {sides{key, nil, copied(key, "1", then), nil}, syncing, outcomeInDoubt},
		"Class":           {sides{key, class, copied("", "", then), nil}, syncing, outcomeSynced},
		"ClassIsGone":     {sides{key, class, nil, nil}, syncing, outcomeDeleting},
		"TenantIsNot":     {sides{key, own, nil, nil}, virtualCluster(condition("Syncing", metav1.ConditionFalse, "Unreachable", "")), outcomeNotSynced},
		"TenantIsNotBut":  {sides{key, own, copied(key, "1", then), nil}, virtualCluster(condition("Syncing", metav1.ConditionFalse, "X", "")), outcomeSynced},
		"NoConditionsYet": {sides{key, own, nil, nil}, virtualCluster(), outcomeNotCopied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.sides.verdict(tc.vc)
			if got.Outcome != tc.want || got.synced() != (tc.want == outcomeSynced) {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestFromSyncer(t *testing.T) {
	got := fromSyncer([]corev1.Event{
		{Reason: "A", Source: corev1.EventSource{Component: "vc-syncer"}}, {Reason: "B", Source: corev1.EventSource{Component: "kubelet"}},
		{Reason: "C", ReportingController: "vc-syncer"},
	})
	if len(got) != 2 || got[0].Reason != "A" || got[1].Reason != "C" {
		t.Error(got)
	}
}

func TestNewestReports(t *testing.T) {
	report := func(uid types.UID, reason string, second int) corev1.Event {
		return corev1.Event{
			Reason: reason, LastTimestamp: metav1.Date(2026, 1, 1, 0, 0, second, 0, time.UTC), InvolvedObject: corev1.ObjectReference{UID: uid},
		}
	}
	got := newestReports([]corev1.Event{
		report("1", "SyncBlocked", 1), report("1", "SyncRejected", 2), report("2", "SyncFailed", 3), report("2", "SyncWaiting", 0), report("3", "Started", 9),
	})
	if len(got) != 2 || got[0].Reason != "SyncFailed" || got[1].Reason != "SyncRejected" {
		t.Error(got)
	}
}

func TestShort(t *testing.T) {
	if got := short(strings.Repeat("ä", 100)); len([]rune(got)) != widestValue || !strings.HasSuffix(got, "…") {
		t.Error(got)
	}
	if got := short("\x1b"); got != `\u001b` {
		t.Error(got)
	}
}

// TestExec: the command has the kubeconfig in its environment, its output is
// not changed, and its exit code is that of the command.
func TestExec(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := connectOptions{platform: newPlatform(streams), command: []string{"sh", "-c", `printf '\033%s' "$KUBECONFIG"; exit 3`}}
	err := o.exec(t.Context(), "/k")
	if exit.Of(err) != 3 || out.String() != "\x1b/k" {
		t.Errorf("%v, %q", err, out)
	}
	o.command = []string{"/no/such/program"}
	if err := o.exec(t.Context(), "/k"); exit.Of(err) != exit.Failed || err.Error() == "" {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	o.command = []string{"sleep", "60"}
	if err := o.exec(ctx, "/k"); err == nil {
		t.Error("the command was not stopped")
	}
}
