package patch

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	celenv "github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/ext"
)

// environment is what expressions can name. It takes milliseconds to make and never changes, so all tenants share it.
var environment = sync.OnceValues(newEnvironment)

// newEnvironment is CEL as Kubernetes' users know it, as far as cel-go brings it, and base64 for the data of Secrets. The macros
// optMap and optFlatMap are left out, since each doubles the text before it, and a chain of them has no end; and so are sortBy
// and cel.bind, whose values the cost meter does not see.
func newEnvironment() (*cel.Env, error) {
	redone := []string{operators.Add, overloads.Matches}
	without := celenv.NewLibrarySubset()
	for _, name := range redone {
		without.AddExcludedFunctions(celenv.NewFunction(name))
	}
	env, err := cel.NewCustomEnv(
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
		cel.Variable("object", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("self", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tenant", cel.MapType(cel.StringType, cel.StringType)),
	)
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	options, err := boundedFunctions(env)
	if err != nil {
		return nil, fmt.Errorf("bound the functions of expressions: %w", err)
	}
	return env.Extend(options...)
}
