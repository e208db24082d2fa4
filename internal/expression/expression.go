package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// maxCost is what one expression may cost, in the unit of cel-go: about a
	// step, or ten bytes.
	maxCost = 1_000_000
	// maxCostOfAll is what the expressions for one object may cost together.
	maxCostOfAll = 5_000_000
	// maxLoops is how many loops one expression may have. The type checker's
	// work can double with each.
	maxLoops = 8
	// maxRounds is how many rounds all loops of one expression may have together.
	// cel-go's own work is quadratic: to count what a round costs, it compares it
	// with all values before it.
	maxRounds = 10_000
)

var errCost = errors.New("the expression takes too many steps")

// Expression is a CEL expression, compiled. Many goroutines may share it.
type Expression struct {
	program cel.Program
	result  *cel.Type
}

// Budget is what the expressions for one object may cost together. The zero
// value is a full one.
type Budget struct{ spent uint64 }

// Compile compiles an expression. An error says at which line and column it is wrong.
func Compile(env *cel.Env, source string) (*Expression, error) {
	parsed, issues := env.Parse(source)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	if n := loops(parsed); n > maxLoops {
		return nil, fmt.Errorf("it has %d loops (map, filter, all, exists and the like), and may have %d", n, maxLoops)
	}
	checked, issues := env.Check(parsed)
	if err := firstOf(issues); err != nil {
		return nil, err
	}
	program, err := env.Program(checked,
		cel.EvalOptions(cel.OptTrackCost),
		cel.CostTracking(meter{}),
		cel.CostTrackerOptions(trackers()...),
		cel.CostLimit(maxCost),
		cel.InterruptCheckFrequency(1), // of rounds
	)
	return &Expression{program: program, result: checked.OutputType()}, err
}

// firstOf is the first of the compiler's complaints, on one line.
func firstOf(issues *cel.Issues) error {
	if issues.Err() == nil {
		return nil
	}
	first := issues.Errors()[0]
	message := strings.TrimSuffix(first.Message, " (in container '')")
	if first.Location.Line() < 1 {
		return errors.New(message)
	}
	return fmt.Errorf("at %d:%d: %s", first.Location.Line(), first.Location.Column()+1, message)
}

// loops counts the loops of an expression.
func loops(parsed *cel.Ast) int {
	n := 0
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			n++
		}
	}))
	return n
}

// Evaluate is the value of the expression for these values of the variables.
func (e *Expression) Evaluate(ctx context.Context, variables map[string]any, budget *Budget) (ref.Val, error) {
	input, err := cel.NewActivation(variables)
	if err != nil {
		return nil, err
	}
	passed := &rounds{Activation: input, ctx: ctx}
	value, details, err := e.program.Eval(passed)
	if cost := details.ActualCost(); cost != nil {
		budget.spent += *cost
	}
	var cancelled interpreter.EvalCancelledError
	switch {
	case passed.number > maxRounds:
		return nil, errCost
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return nil, errCost
	case err != nil:
		return nil, err
	case budget.spent > maxCostOfAll:
		return nil, fmt.Errorf("%w, together with those before it", errCost)
	}
	return value, nil
}
