package patch

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// patch is one patch, compiled.
type patch struct {
	name  string
	when  *expression.Condition // nil: always
	steps []step
	err   error // why it did not compile
}

// step is one change that a patch makes.
type step struct {
	field string // as errors name it
	apply func(ctx context.Context, d *draft) error
}

// compile keeps the error where there is one.
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

// compileSteps compiles what the patch does.
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

// apply changes the draft if the patch is meant for it, and says whether it is. After each step it calls check, if there is one.
func (p *patch) apply(ctx context.Context, d *draft, check func() error) (bool, error) {
	if p.err != nil {
		return false, p.err
	}
	meant, err := p.meant(ctx, d)
	if err != nil || !meant {
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

// meant says whether the patch is for this object.
func (p *patch) meant(ctx context.Context, d *draft) (bool, error) {
	if p.when == nil {
		return true, nil
	}
	holds, err := p.when.Holds(ctx, d.variables(), &d.budget)
	if err != nil {
		return false, p.fault("when", err)
	}
	return holds, nil
}

// fault says which patch and which field of it an error is about.
func (p *patch) fault(field string, err error) error {
	return fmt.Errorf("patch %q, %s: %w", p.name, field, err)
}
