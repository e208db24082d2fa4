package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodMerge(t *testing.T) {
	forever := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	minute, hour := forever, forever
	minute.TolerationSeconds, hour.TolerationSeconds = new(int64(60)), new(int64(3600))
	other := corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists}

	tests := map[string]struct{ super, desired, want corev1.PodSpec }{
		"images change, by the names of containers": {
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Image: "busybox:1"}},
				Containers:     []corev1.Container{{Name: "app", Image: "nginx:1"}, {Name: "sidecar", Image: "envoy:1"}},
			},
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Image: "busybox:2"}},
				Containers:     []corev1.Container{{Name: "sidecar", Image: "envoy:2"}, {Name: "app", Image: "nginx:2"}},
			},
			corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Image: "busybox:2"}},
				Containers:     []corev1.Container{{Name: "app", Image: "nginx:2"}, {Name: "sidecar", Image: "envoy:2"}},
			},
		},
		"containers that the super cluster added stay": {
			corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:1"}, {Name: "injected", Image: "proxy:1"}}},
			corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:2"}}},
			corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:2"}, {Name: "injected", Image: "proxy:1"}}},
		},
		"a deadline is set": {
			corev1.PodSpec{}, corev1.PodSpec{ActiveDeadlineSeconds: new(int64(9))}, corev1.PodSpec{ActiveDeadlineSeconds: new(int64(9))},
		},
		"an earlier deadline": {
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(9))},
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(8))},
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(8))},
		},
		"a deadline that the super cluster made nearer stays": {
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(8))},
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(9))},
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(8))},
		},
		"a deadline earlier than that of the super cluster": {
			corev1.PodSpec{ActiveDeadlineSeconds: new(int64(8))}, corev1.PodSpec{}, corev1.PodSpec{ActiveDeadlineSeconds: new(int64(8))},
		},
		"tolerations are added": {
			corev1.PodSpec{Tolerations: []corev1.Toleration{forever}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{forever, other}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{forever, other}},
		},
		"tolerations that the super cluster added stay": {
			corev1.PodSpec{Tolerations: []corev1.Toleration{other}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{forever}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{other, forever}},
		},
		"a toleration lasts longer": {
			corev1.PodSpec{Tolerations: []corev1.Toleration{other, minute}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{other, hour}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{other, hour}},
		},
		"a toleration lasts forever": {
			corev1.PodSpec{Tolerations: []corev1.Toleration{minute}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{forever}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{forever}},
		},
		"tolerations alike except their time stay": {
			corev1.PodSpec{Tolerations: []corev1.Toleration{minute, hour}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{minute, hour}},
			corev1.PodSpec{Tolerations: []corev1.Toleration{minute, hour}},
		},
		"immutable fields stay": {
			corev1.PodSpec{
				NodeName: "node-1", ServiceAccountName: "default", Hostname: "web", Priority: new(int32(0)),
				Volumes:    volumes(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
				Containers: []corev1.Container{{Name: "app", Image: "nginx:1", Command: []string{"old"}}},
			},
			corev1.PodSpec{
				ServiceAccountName: "other", Hostname: "other",
				Containers: []corev1.Container{{Name: "app", Image: "nginx:1", Command: []string{"new"}}},
			},
			corev1.PodSpec{
				NodeName: "node-1", ServiceAccountName: "default", Hostname: "web", Priority: new(int32(0)),
				Volumes:    volumes(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
				Containers: []corev1.Container{{Name: "app", Image: "nginx:1", Command: []string{"old"}}},
			},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			super := &corev1.Pod{ObjectMeta: superMeta("web"), Spec: tt.super}
			desired := &corev1.Pod{Spec: tt.desired}
			k.Merge(super, desired)
			want := &corev1.Pod{ObjectMeta: superMeta("web"), Spec: tt.want}
			if diff := cmp.Diff(want, super, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
			once := super.DeepCopy()
			k.Merge(super, desired)
			unchanged(t, "the copy, by a second merge,", once, super)
		})
	}
}

// TestPodMergeSettles checks that a new copy is not changed.
func TestPodMergeSettles(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	tenant := fill(&corev1.Pod{})
	everyPodField(tenant)
	desired, err := k.Desired(view, tenant)
	if err != nil {
		t.Fatal(err)
	}
	super := desired.DeepCopy()
	k.Merge(super, desired)
	unchanged(t, "a fresh copy", desired, super)
}
