package hosted

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestUnfinishedDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   appsv1.DeploymentSpec
		status appsv1.DeploymentStatus
		want   string
	}{
		"rolled out":           {appsv1.DeploymentSpec{Replicas: new(int32(2))}, deployed(2, 2), ""},
		"one by default":       {appsv1.DeploymentSpec{}, deployed(1, 1), ""},
		"not observed":         {appsv1.DeploymentSpec{Replicas: new(int32(2))}, appsv1.DeploymentStatus{}, notObserved},
		"old pods":             {appsv1.DeploymentSpec{Replicas: new(int32(2))}, deployed(3, 2), inRollout},
		"too few":              {appsv1.DeploymentSpec{Replicas: new(int32(2))}, deployed(1, 1), inRollout},
		"not updated":          {appsv1.DeploymentSpec{Replicas: new(int32(2))}, deployed(2, 1), inRollout},
		"paused in a rollout":  {appsv1.DeploymentSpec{Replicas: new(int32(2)), Paused: true}, deployed(3, 2), ""},
		"scaled to zero":       {appsv1.DeploymentSpec{Replicas: new(int32(0))}, deployed(0, 0), ""},
		"pods are unavailable": {appsv1.DeploymentSpec{Replicas: new(int32(2))}, unavailable(2), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: tc.spec, Status: tc.status}
			if got := unfinishedDeployment(d); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func deployed(all, updated int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: all, UpdatedReplicas: updated}
}

func unavailable(all int32) appsv1.DeploymentStatus {
	status := deployed(all, all)
	status.UnavailableReplicas = all
	return status
}

func TestUnfinishedStatefulSet(t *testing.T) {
	rolling := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	from2 := rolling
	from2.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
	onDelete := appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	for name, tc := range map[string]struct {
		strategy                appsv1.StatefulSetUpdateStrategy
		observed, have, updated int32
		want                    string
	}{
		"rolled out":          {rolling, 3, 3, 3, ""},
		"not observed":        {rolling, 2, 3, 3, notObserved},
		"too few":             {rolling, 3, 2, 2, inRollout},
		"not updated":         {rolling, 3, 3, 1, inRollout},
		"as far as partition": {from2, 3, 3, 1, ""},
		"on deletion only":    {onDelete, 3, 3, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Generation: 3},
				Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: tc.strategy},
				Status: appsv1.StatefulSetStatus{
					ObservedGeneration: int64(tc.observed), Replicas: tc.have, UpdatedReplicas: tc.updated,
				},
			}
			if got := unfinishedStatefulSet(s); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUnfinishedSets(t *testing.T) {
	replicaSet := func(observed int64, want, have int32) string {
		return unfinishedReplicaSet(&appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.ReplicaSetSpec{Replicas: &want},
			Status: appsv1.ReplicaSetStatus{ObservedGeneration: observed, Replicas: have},
		})
	}
	daemonSet := func(kind appsv1.DaemonSetUpdateStrategyType, observed int64, want, have, updated int32) string {
		return unfinishedDaemonSet(&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: kind}},
			Status: appsv1.DaemonSetStatus{
				ObservedGeneration: observed, DesiredNumberScheduled: want, CurrentNumberScheduled: have, UpdatedNumberScheduled: updated,
			},
		})
	}
	const rolling, onDelete = appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType
	for name, tc := range map[string]struct{ got, want string }{
		"ReplicaSet, finished":      {replicaSet(2, 3, 3), ""},
		"ReplicaSet, not observed":  {replicaSet(1, 3, 3), notObserved},
		"ReplicaSet, scaled":        {replicaSet(2, 3, 2), "is being scaled"},
		"DaemonSet, finished":       {daemonSet(rolling, 2, 3, 3, 3), ""},
		"DaemonSet, not observed":   {daemonSet(rolling, 1, 3, 3, 3), notObserved},
		"DaemonSet, too few":        {daemonSet(rolling, 2, 3, 2, 2), inRollout},
		"DaemonSet, not updated":    {daemonSet(rolling, 2, 3, 3, 2), inRollout},
		"DaemonSet, by deletion":    {daemonSet(onDelete, 2, 3, 3, 0), ""},
		"autoscaler of one size":    {unfinishedAutoscaler(autoscaler(nil, 1)), ""},
		"autoscaler of many sizes":  {unfinishedAutoscaler(autoscaler(new(int32(2)), 5)), "scales by metrics"},
		"pod that runs":             {unfinishedPod(podIn(corev1.PodRunning)), ""},
		"pod that has failed":       {unfinishedPod(podIn(corev1.PodFailed)), ""},
		"pod that is pending":       {unfinishedPod(podIn(corev1.PodPending)), "is pending"},
		"pod of no syncer's so far": {unfinishedPod(podIn("")), "is pending"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", name, tc.got, tc.want)
		}
	}
}

func autoscaler(least *int32, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: least, MaxReplicas: most},
	}
}

func podIn(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
}

func TestUnfinishedJob(t *testing.T) {
	complete := batchv1.JobCondition{
		Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
	}
	failed, suspended := complete, complete
	failed.Type, suspended.Type = batchv1.JobFailed, batchv1.JobSuspended
	notYet := complete
	notYet.Status = corev1.ConditionFalse
	for name, tc := range map[string]struct {
		spec    batchv1.JobSpec
		active  int32
		is      []batchv1.JobCondition
		want    string
		expires time.Time
	}{
		"new":                  {want: "runs"},
		"complete":             {is: []batchv1.JobCondition{complete}},
		"failed":               {is: []batchv1.JobCondition{failed}},
		"not complete":         {is: []batchv1.JobCondition{notYet}, want: "runs"},
		"suspended":            {spec: batchv1.JobSpec{Suspend: new(true)}, is: []batchv1.JobCondition{suspended}},
		"suspended, with pods": {spec: batchv1.JobSpec{Suspend: new(true)}, active: 1, want: "runs"},
		"expires": {
			spec: batchv1.JobSpec{TTLSecondsAfterFinished: new(int32(60))}, is: []batchv1.JobCondition{complete},
			expires: noon.Add(time.Minute),
		},
	} {
		t.Run(name, func(t *testing.T) {
			why, expires := unfinishedJob(&batchv1.Job{Spec: tc.spec, Status: batchv1.JobStatus{Active: tc.active, Conditions: tc.is}})
			if why != tc.want || !expires.Equal(tc.expires) {
				t.Errorf("got %q, %s, want %q, %s", why, expires, tc.want, tc.expires)
			}
		})
	}
}

func TestDueCronJob(t *testing.T) {
	for name, tc := range map[string]struct {
		spec batchv1.CronJobSpec
		want time.Time
	}{
		"every day":            {batchv1.CronJobSpec{Schedule: "30 13 * * *"}, noon.Add(90 * time.Minute)},
		"in its time zone":     {batchv1.CronJobSpec{Schedule: "30 13 * * *", TimeZone: new("Europe/Berlin")}, noon.Add(30 * time.Minute)},
		"suspended":            {batchv1.CronJobSpec{Schedule: "30 13 * * *", Suspend: new(true)}, time.Time{}},
		"never":                {batchv1.CronJobSpec{Schedule: "0 0 31 2 *"}, time.Time{}},
		"no schedule":          {batchv1.CronJobSpec{Schedule: "sometimes"}, time.Time{}},
		"a zone that is not":   {batchv1.CronJobSpec{Schedule: "30 13 * * *", TimeZone: new("Mars/Olympus")}, time.Time{}},
		"descriptors are fine": {batchv1.CronJobSpec{Schedule: "@hourly"}, noon.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dueCronJob(&batchv1.CronJob{Spec: tc.spec}, noon); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWorkNotesOneObject(t *testing.T) {
	work := Work{}
	if work.note("Namespace", metav1.ObjectMeta{Name: "team"}, "") {
		t.Error("a Namespace that stays is work")
	}
	deleted := metav1.NewTime(noon)
	if !work.note("Namespace", metav1.ObjectMeta{Name: "team", DeletionTimestamp: &deleted}, "") ||
		work.Unfinished != "Namespace team is being deleted" {
		t.Errorf("got %q", work.Unfinished)
	}
	if !work.note("Pod", metav1.ObjectMeta{Namespace: "team", Name: "web"}, "is pending") || work.Unfinished != "Pod team/web is pending" {
		t.Errorf("got %q", work.Unfinished)
	}
	for _, at := range []time.Time{{}, noon, noon.Add(time.Hour), noon.Add(-time.Hour), {}} {
		work.due(at)
	}
	if !work.Due.Equal(noon.Add(-time.Hour)) {
		t.Errorf("due at %s", work.Due)
	}
}
