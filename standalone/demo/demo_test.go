package demo

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWriteTable(t *testing.T) {
	var out bytes.Buffer
	err := writeTable(&out, []row{
		{tenant: "red", object: "service shop/web", super: "r-shop/web"},
		{tenant: "red", object: "pod shop/web-1", super: "r-shop/web-1", node: "node-1", phase: "Running", took: 12345 * time.Microsecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "" +
		"TENANT  TENANT'S OBJECT   IN THE SUPER CLUSTER  NODE    PHASE    MS TO RUNNING\n" +
		"red     service shop/web  r-shop/web            -       -        -\n" +
		"red     pod shop/web-1    r-shop/web-1          node-1  Running  12\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestManifest(t *testing.T) {
	objects, err := parse(shopManifest)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
	}
	want := []string{"Namespace", "ConfigMap", "Secret", "Service", "Deployment"}
	if len(kinds) != len(want) {
		t.Fatalf("got %v, want %v", kinds, want)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("got %v, want %v", kinds, want)
		}
	}
}

func TestStopwatch(t *testing.T) {
	s := &stopwatch{created: map[types.UID]time.Time{}, running: map[types.UID]time.Time{}}
	begin := time.Now()
	pod := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: corev1.PodStatus{Phase: phase}}
	}
	s.note(pod(corev1.PodPending), begin)
	if _, ok := s.took("1"); ok {
		t.Error("it does not run yet")
	}
	s.note(pod(corev1.PodRunning), begin.Add(time.Second))
	s.note(pod(corev1.PodRunning), begin.Add(time.Minute))
	if took, ok := s.took("1"); !ok || took != time.Second {
		t.Errorf("took %s, want 1s", took)
	}
}
