package deletion

import (
	"context"
	"sync"
)

// Verifier asks a question for many at once: each gets an answer to a question that was put after they came, and those who come
// while one is being answered share the next.
type Verifier struct {
	mu    sync.Mutex
	begun int

	// turn is full while a question is put. Who fills it may use answered, the last question that was, and its answer.
	turn     chan struct{}
	answered int
	answer   error
}

// NewVerifier makes a verifier that has asked nothing yet.
func NewVerifier() *Verifier {
	return &Verifier{turn: make(chan struct{}, 1)}
}

// Verify puts the question, unless one that was put after the call began has been answered meanwhile.
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

// count adds to the questions that were begun.
func (v *Verifier) count(more int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begun += more
	return v.begun
}
