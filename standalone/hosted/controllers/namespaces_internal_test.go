package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

// recordingDeleter returns a result for each attempt, and records the times.
type recordingDeleter struct {
	begin    time.Time
	results  []error
	attempts []time.Duration
}

func (d *recordingDeleter) Delete(context.Context, string) error {
	d.attempts = append(d.attempts, time.Since(d.begin))
	if len(d.results) < len(d.attempts) {
		return nil
	}
	return d.results[len(d.attempts)-1]
}

// TestNamespaceRetries: the first attempt comes after the grace period, and the
// next ones after growing intervals.
func TestNamespaceRetries(t *testing.T) {
	remaining, failure := &deletion.ResourcesRemainingError{Estimate: 30}, errors.New("conflict")
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		results  []error
		attempts []time.Duration
	}{
		"an empty namespace": {nil, []time.Duration{1000 * ms}},
		"objects that remain": {slices.Repeat([]error{remaining}, 7),
			[]time.Duration{1000 * ms, 1250 * ms, 1750 * ms, 2750 * ms, 4750 * ms, 8750 * ms, 13750 * ms, 18750 * ms}},
		"failures": {slices.Repeat([]error{failure}, 7),
			[]time.Duration{1000 * ms, 1250 * ms, 1750 * ms, 2750 * ms, 4750 * ms, 8750 * ms, 16750 * ms, 32750 * ms}},
		"both": {[]error{failure, remaining, failure}, []time.Duration{1000 * ms, 1250 * ms, 1750 * ms, 2750 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				deleter := &recordingDeleter{begin: time.Now(), results: test.results}
				c := newNamespaces(deleter)
				c.synced = func() bool { return true }
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); c.Run(ctx, 2) }()
				c.enqueue(namespaceOf("kept", nil))
				c.enqueue(namespaceOf("deleted", &metav1.Time{Time: time.Now()}))
				time.Sleep(time.Hour)
				cancel()
				<-ended
				NewWithT(t).Expect(deleter.attempts).To(Equal(test.attempts))
			})
		})
	}
}

// TestNamespaceIsForgotten: a namespace that is created and deleted again under
// the same name is retried as soon as the first.
func TestNamespaceIsForgotten(t *testing.T) {
	g := NewWithT(t)
	deleter := &recordingDeleter{begin: time.Now(), results: []error{&deletion.ResourcesRemainingError{Estimate: 30}}}
	c := newNamespaces(deleter)
	defer c.queue.ShutDown()
	c.queue.Add("team")
	g.Expect(c.next(t.Context())).To(BeTrue())
	g.Expect(c.queue.NumRequeues("team")).To(Equal(1))
	g.Expect(c.next(t.Context())).To(BeTrue())
	g.Expect(c.queue.NumRequeues("team")).To(BeZero())
	c.queue.ShutDown()
	g.Expect(c.next(t.Context())).To(BeFalse())
}

func namespaceOf(name string, deleted *metav1.Time) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: deleted}}
}
