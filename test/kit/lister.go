package kit

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// listInterval is that of a [Lister].
const listInterval = 100 * time.Millisecond

// Lister lists ConfigMaps ten times a second until Stop.
type Lister struct {
	// Stop ends it. It is idempotent.
	Stop func()

	mu        sync.Mutex
	succeeded int
	failures  []error
	last      time.Time
	gap       time.Duration
}

// StartLister starts a Lister.
func StartLister(ctx context.Context, c kubernetes.Interface) *Lister {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lister{last: time.Now()}
	var work sync.WaitGroup
	work.Go(func() {
		ticker := time.NewTicker(listInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
				if ctx.Err() == nil {
					l.record(err)
				}
			}
		}
	})
	l.Stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
	})
	return l
}

func (l *Lister) record(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, err)
		return
	}
	l.succeeded++
	l.gap, l.last = max(l.gap, time.Since(l.last)), time.Now()
}

// Lists returns how many lists have succeeded.
func (l *Lister) Lists() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.succeeded
}

// Failures returns the errors of the lists that have failed.
func (l *Lister) Failures() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failures)
}

// Gap returns the longest time between two lists that have succeeded.
func (l *Lister) Gap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gap
}
