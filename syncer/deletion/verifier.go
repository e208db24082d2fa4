package deletion

import (
	"context"
	"sync"
)

// Verifier shares the answer of an expensive check: each caller gets an answer
// to a check that began after its call, and callers that arrive during a check
// share the next.
type Verifier struct {
	mu    sync.Mutex
	begun int

	// turn is full while a check runs. Its owner may use answered, the number
	// of the last completed check, and its answer.
	turn     chan struct{}
	answered int
	answer   error
}

// NewVerifier returns a verifier without answers.
func NewVerifier() *Verifier {
	return &Verifier{turn: make(chan struct{}, 1)}
}

// Verify runs the check, unless one that began after this call has been
// completed meanwhile.
func (v *Verifier) Verify(ctx context.Context, ask func(context.Context) error) error {
	before := v.count(0)
	select {
	case v.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-v.turn }()
	if v.answered > before {
		return v.answer
	}
	v.answered = v.count(1)
	v.answer = ask(ctx)
	return v.answer
}

// count adds to the number of checks that have begun, and returns it.
func (v *Verifier) count(more int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begun += more
	return v.begun
}
