package patch

import (
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// environment declares the variables of the expressions of patches. All tenants
// share it.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return expression.NewEnvironment(
		cel.Variable("object", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("self", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tenant", cel.MapType(cel.StringType, cel.StringType)),
	)
})
