package lastknown

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestOf(t *testing.T) {
	pod := &corev1.Pod{}
	for name, tt := range map[string]struct {
		deleted any
		want    *corev1.Pod
	}{
		"a deletion":                   {pod, pod},
		"a missed deletion":            {cache.DeletedFinalStateUnknown{Key: "a/b", Obj: pod}, pod},
		"another type":                 {&corev1.Node{}, nil},
		"a missed one of another type": {cache.DeletedFinalStateUnknown{Key: "b", Obj: &corev1.Node{}}, nil},
		"a missed one without a state": {cache.DeletedFinalStateUnknown{Key: "a/b"}, nil},
		"nothing":                      {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := Of[*corev1.Pod](tt.deleted); got != tt.want || ok != (tt.want != nil) {
				t.Errorf("got %v, %t", got, ok)
			}
		})
	}
}
