// Package expression compiles and evaluates CEL expressions of admins, over
// objects of tenants. It bounds the cost of each of them.
package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	celenv "github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/ext"
)

// NewEnvironment makes what expressions can name: the variables and libraries
// that are given, and CEL as Kubernetes' users know it, as far as cel-go brings
// it, with base64 for the data of Secrets. It takes milliseconds to make, never
// changes, and is shared.
//
// The macros optMap and optFlatMap are left out, since each doubles the text
// before it, and a chain of them has no end; and so are sortBy and cel.bind,
// whose values the cost meter does not see.
func NewEnvironment(more ...cel.EnvOption) (*cel.Env, error) {
	redone := []string{operators.Add, overloads.Matches}
	without := celenv.NewLibrarySubset()
	for _, name := range redone {
		without.AddExcludedFunctions(celenv.NewFunction(name))
	}
	env, err := cel.NewCustomEnv(append([]cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(without)),
		cel.OptionalTypes(),
		ext.Lists(ext.ListsVersion(2)),
		cel.ClearMacros(),
		cel.Macros(cel.StandardMacros...),
		ext.TwoVarComprehensions(),
		ext.Strings(),
		ext.Sets(),
		ext.Encoders(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	options, err := boundedFunctions(env)
	if err != nil {
		return nil, fmt.Errorf("bound the functions of expressions: %w", err)
	}
	return env.Extend(options...)
}
