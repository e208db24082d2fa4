package demo

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestCountRunning(t *testing.T) {
	pods := func(phases ...corev1.PodPhase) []corev1.Pod {
		all := make([]corev1.Pod, len(phases))
		for i, phase := range phases {
			all[i].Status.Phase = phase
		}
		return all
	}
	for want, all := range map[int][]corev1.Pod{
		0: pods(corev1.PodPending, corev1.PodFailed, ""),
		1: pods(corev1.PodRunning, corev1.PodSucceeded),
		2: pods(corev1.PodRunning, corev1.PodPending, corev1.PodRunning),
	} {
		if got := countRunning(all); got != want {
			t.Errorf("%d of %d pods run, want %d", got, len(all), want)
		}
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		manifest string
		want     int
		fails    bool
	}{
		"nothing":     {"", 0, false},
		"one object":  {"kind: A\nmetadata: {name: a}\n", 1, false},
		"two objects": {"kind: A\n---\nkind: B\n", 2, false},
		"JSON":        {`{"kind": "A"}`, 1, false},
		"no YAML":     {"kind: [", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := parse([]byte(c.manifest))
			if (err != nil) != c.fails || len(objects) != c.want {
				t.Errorf("got %d objects (%v), want %d", len(objects), err, c.want)
			}
		})
	}
}

// TestNewTenant: what cannot be a kubeconfig says whose it is.
func TestNewTenant(t *testing.T) {
	if _, err := newTenant("red", "default-red", []byte("nothing"), nil); err == nil || !strings.Contains(err.Error(), "kubeconfig of red") {
		t.Errorf("got %v", err)
	}
}

func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "-", time.Millisecond: "1", 1999 * time.Microsecond: "1", 3 * time.Second: "3000"} {
		if got := millis(d); got != want {
			t.Errorf("%s is written %s, want %s", d, got, want)
		}
	}
}
