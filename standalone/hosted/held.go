package hosted

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// heldPerName and heldTotal bound the requests that wait for control planes
	// to wake.
	heldPerName = 256
	heldTotal   = 4096
	// holdTimeout is how long a request waits. Clients retry, and a start that
	// takes longer has most likely failed.
	holdTimeout = time.Minute
	// wakesPerSecond and wakesAtOnce bound the starts that requests cause on a
	// host. Wakes in excess are delayed.
	wakesPerSecond = 5
	wakesAtOnce    = 50
)

// sleepers holds the server names of control planes that sleep, and the
// requests to those that are about to wake. A control plane that sleeps has
// nothing else in the process.
type sleepers struct {
	wakes *rate.Limiter

	mu sync.Mutex
	// wake has the function that wakes a control plane, by name.
	wake map[string]func()
	held map[string]*held
	all  int
}

// held counts the requests to a control plane that sleeps.
type held struct {
	number int
	// awake is closed when the control plane has woken, or no longer sleeps for
	// another reason.
	awake chan struct{}
}

func newSleepers() *sleepers {
	return &sleepers{
		wakes: rate.NewLimiter(wakesPerSecond, wakesAtOnce),
		wake:  map[string]func(){}, held: map[string]*held{},
	}
}

// add registers a control plane that sleeps. A request to it calls wake, and again
// after all requests that waited have given up.
func (s *sleepers) add(name string, wake func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake[name] = wake
}

// remove unregisters a control plane. The requests that wait for it continue.
func (s *sleepers) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wake, name)
	if waiting := s.held[name]; waiting != nil {
		delete(s.held, name)
		close(waiting.awake)
	}
}

// await wakes the control plane if it sleeps, waits until it has woken, and
// reports whether it has. It returns true at once for one that does not sleep.
func (s *sleepers) await(ctx context.Context, name string) bool {
	waiting, wake, sleeps := s.hold(name)
	if !sleeps {
		return true
	}
	if waiting == nil {
		return false // too many wait
	}
	defer s.release(name, waiting)
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	if wake != nil {
		if err := s.wakes.Wait(ctx); err != nil {
			s.giveUp(name, waiting)
			return false
		}
		wake()
	}
	select {
	case <-waiting.awake:
		return true
	case <-ctx.Done():
		return false
	}
}

// hold counts a request to a control plane that sleeps; nil if there are too
// many. The first one gets the function that wakes the control plane.
func (s *sleepers) hold(name string) (waiting *held, wake func(), sleeps bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wake, sleeps = s.wake[name]
	if !sleeps {
		return nil, nil, false
	}
	waiting = s.held[name]
	switch {
	case s.all >= heldTotal || waiting != nil && waiting.number >= heldPerName:
		return nil, nil, true
	case waiting == nil:
		waiting = &held{awake: make(chan struct{})}
		s.held[name] = waiting
	default:
		wake = nil
	}
	waiting.number++
	s.all++
	return waiting, wake, true
}

// giveUp ends the wait of all requests to a control plane that could not be
// woken.
func (s *sleepers) giveUp(name string, waiting *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[name] == waiting {
		delete(s.held, name)
		close(waiting.awake)
	}
}

// release ends the wait of a request.
func (s *sleepers) release(name string, waiting *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting.number--
	s.all--
	if waiting.number == 0 && s.held[name] == waiting {
		delete(s.held, name)
	}
}

// sleeps reports whether a control plane sleeps.
func (s *sleepers) sleeps(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, sleeps := s.wake[name]
	return sleeps
}

// count returns how many control planes sleep.
func (s *sleepers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wake)
}
