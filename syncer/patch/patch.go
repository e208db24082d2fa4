package patch

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// patch is a compiled patch.
type patch struct {
	name  string
	when  *expression.Condition // nil for always
	steps []step
	err   error // why it did not compile
}

// step is one change of a patch.
type step struct {
	field string // the name for errors
	apply func(ctx context.Context, d *draft) error
}

// compile returns a patch, which has an error if it does not compile.
func compile(source *tenancyv1alpha1.SyncPatch) *patch {
	p := &patch{name: source.Name}
	env, err := environment()
	if err != nil {
		p.err = p.fault("expressions", err)
		return p
	}
	if p.err = p.compileWhen(env, source.When); p.err == nil {
		p.err = p.compileSteps(env, source)
	}
	return p
}

// compileWhen compiles the condition.
func (p *patch) compileWhen(env *cel.Env, source string) error {
	if source == "" {
		return nil
	}
	var err error
	if p.when, err = expression.CompileCondition(env, source); err != nil {
		return p.fault("when", err)
	}
	return nil
}

// compileSteps compiles the changes.
func (p *patch) compileSteps(env *cel.Env, source *tenancyv1alpha1.SyncPatch) error {
	if (len(source.Set) > 0) == (source.JSONPatch != "") {
		return p.fault("set", errors.New("one of set and jsonPatch must be given"))
	}
	if source.JSONPatch != "" {
		apply, err := compileJSONPatch(source.JSONPatch)
		if err != nil {
			return p.fault("jsonPatch", err)
		}
		p.steps = []step{{field: "jsonPatch", apply: apply}}
		return nil
	}
	for _, field := range source.Set {
		apply, err := compileSet(env, field)
		if err != nil {
			return p.fault(field.Path, err)
		}
		p.steps = append(p.steps, step{field: field.Path, apply: apply})
	}
	return nil
}

// apply changes the draft if the patch applies to it, and reports whether it
// does. It calls check, unless it is nil, after each step.
func (p *patch) apply(ctx context.Context, d *draft, check func() error) (bool, error) {
	if p.err != nil {
		return false, p.err
	}
	applies, err := p.applies(ctx, d)
	if err != nil || !applies {
		return false, err
	}
	for _, s := range p.steps {
		err := s.apply(ctx, d)
		if err == nil && check != nil {
			err = check()
		}
		if err != nil {
			return false, p.fault(s.field, err)
		}
	}
	return true, nil
}

// applies reports whether the patch is for this object.
func (p *patch) applies(ctx context.Context, d *draft) (bool, error) {
	if p.when == nil {
		return true, nil
	}
	holds, err := p.when.Holds(ctx, d.variables(), &d.budget)
	if err != nil {
		return false, p.fault("when", err)
	}
	return holds, nil
}

// fault adds the patch and its field to an error.
func (p *patch) fault(field string, err error) error {
	return fmt.Errorf("patch %q, %s: %w", p.name, field, err)
}
