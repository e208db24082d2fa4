package hosted

import "context"

// NewController returns a controller that is none of Kubernetes'.
func NewController(name string, build func(ctx context.Context) (func(context.Context), error)) Controller {
	return Controller{Name: name, build: func(ctx context.Context, _ *environment) (func(context.Context), error) { return build(ctx) }}
}
