package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stopwatch measures how long pods take from their creation to Running, as
// their tenant sees it. The time in an object counts whole seconds, so it is
// what a watch hears that counts.
type stopwatch struct {
	watch watch.Interface
	done  chan struct{}

	mu      sync.Mutex
	created map[types.UID]time.Time
	running map[types.UID]time.Time
}

// startStopwatch watches all pods of the tenant until it is stopped.
func startStopwatch(ctx context.Context, t *Tenant) (*stopwatch, error) {
	w, err := t.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(shop))
	if err != nil {
		return nil, fmt.Errorf("%s: watch pods: %w", t.Name, err)
	}
	s := &stopwatch{
		watch: w, done: make(chan struct{}),
		created: map[types.UID]time.Time{}, running: map[types.UID]time.Time{},
	}
	go s.listen() // ends with the watch; stop waits for it
	return s, nil
}

func (s *stopwatch) listen() {
	defer close(s.done)
	for event := range s.watch.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			s.note(pod, time.Now())
		}
	}
}

// note takes the first time that a pod is seen, and the first time that it is
// seen running.
func (s *stopwatch) note(pod *corev1.Pod, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.created[pod.UID]; !known {
		s.created[pod.UID] = now
	}
	if _, known := s.running[pod.UID]; !known && pod.Status.Phase == corev1.PodRunning {
		s.running[pod.UID] = now
	}
}

// took is how long a pod took to run; false if it does not yet.
func (s *stopwatch) took(pod types.UID) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running, ok := s.running[pod]
	return running.Sub(s.created[pod]), ok
}

func (s *stopwatch) stop() {
	s.watch.Stop()
	<-s.done
}
