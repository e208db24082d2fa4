package expression

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Condition is an expression that is true or false.
type Condition struct{ expression *Expression }

// CompileCondition compiles an expression that has to give a bool.
func CompileCondition(env *cel.Env, source string) (*Condition, error) {
	e, err := Compile(env, source)
	if err != nil {
		return nil, err
	}
	if kind := e.result.Kind(); kind != types.BoolKind && kind != types.DynKind {
		return nil, fmt.Errorf("it gives %s and not bool", e.result)
	}
	return &Condition{e}, nil
}

// Holds reports whether the condition is true for these values of the variables.
func (c *Condition) Holds(ctx context.Context, variables map[string]any, budget *Budget) (bool, error) {
	value, err := c.expression.Evaluate(ctx, variables, budget)
	if err != nil {
		return false, err
	}
	answer, isBool := value.(types.Bool)
	if !isBool {
		return false, fmt.Errorf("it gives %s and not bool", value.Type().TypeName())
	}
	return bool(answer), nil
}
