package expression

import (
	"context"

	"github.com/google/cel-go/cel"
)

const (
	// interrupted is the variable by which cel-go asks after each round of a loop
	// whether to end. No expression can name it.
	interrupted = "#interrupted"
	// roundsBetweenLooks is the number of rounds between checks of the context.
	roundsBetweenLooks = 100
)

// rounds are variables that end the loops of an expression after maxRounds, or with
// the context.
type rounds struct {
	cel.Activation

	ctx    context.Context
	number int
}

// ResolveName implements cel.Activation.
func (r *rounds) ResolveName(name string) (any, bool) {
	if name != interrupted {
		return r.Activation.ResolveName(name)
	}
	r.number++
	return true, r.number > maxRounds || r.number%roundsBetweenLooks == 0 && r.ctx.Err() != nil
}
