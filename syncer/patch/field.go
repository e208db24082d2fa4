package patch

import (
	"context"

	"github.com/google/cel-go/cel"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// compileSet returns the step that sets a field to the value of an expression,
// or removes it if the value is null.
func compileSet(env *cel.Env, source tenancyv1alpha1.FieldExpression) (func(context.Context, *draft) error, error) {
	path, err := parsePointer(source.Path)
	if err != nil {
		return nil, err
	}
	value, err := expression.Compile(env, source.Expression)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, d *draft) error {
		result, err := value.Evaluate(ctx, d.variables(), &d.budget)
		if err != nil {
			return err
		}
		json, err := toJSON(result)
		if err != nil {
			return err
		}
		if json == nil {
			_, err = remove(d.content, path)
		} else {
			_, err = put(d.content, path, json)
		}
		return err
	}, nil
}
