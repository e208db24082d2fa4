package main

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// reason explains why specs fail.
type reason struct {
	// Specs are the full names of the specs.
	Specs  []string `json:"specs"`
	Reason string   `json:"reason"`
}

// reasons are why specs fail: through a tenant and not directly; directly as
// well; and through the other tenants and not through the shared one, which has
// the open policy.
type reasons struct {
	Tenant        []reason `json:"tenant"`
	Both          []reason `json:"both"`
	Dedicated     []reason `json:"dedicated"`
	DefaultPolicy []reason `json:"defaultPolicy"`
}

//go:embed reasons.yaml
var reasonsFile []byte

func readReasons() (reasons, error) {
	r := reasons{}
	if err := yaml.UnmarshalStrict(reasonsFile, &r); err != nil {
		return r, fmt.Errorf("read reasons.yaml: %w", err)
	}
	return r, nil
}

// find is the reason that is given for a spec; empty for none.
func find(reasons []reason, name string) string {
	for _, r := range reasons {
		if slices.Contains(r.Specs, name) {
			return r.Reason
		}
	}
	return ""
}

// failure is a spec that fails, and why.
type failure struct{ Name, Reason string }

// tally is how many specs ran on a side, and how many passed.
type tally struct{ Ran, Passed int }

// comparison is the result of all sides. OnlyTenant are the specs that fail
// through the shared tenant and not directly, OnlyDirect those that fail
// directly and not through it. OnlyDedicated and OnlyDefaultPolicy fail through
// that tenant and not through the shared one.
type comparison struct {
	Specs                            int
	Direct, Shared                   tally
	Dedicated, DefaultPolicy         tally
	OnlyTenant, OnlyDirect, Both     []failure
	OnlyDedicated, OnlyDefaultPolicy []failure
}

// compare holds the results of the sides against each other. A side without
// results has not run.
func compare(specs []spec, sides map[string]*results, given reasons) comparison {
	c := comparison{Specs: len(specs)}
	for _, s := range specs {
		passedDirect, ranDirect := c.Direct.count(sides[direct], s.name)
		passedTenant, ranTenant := c.Shared.count(sides[shared], s.name)
		if passed, ran := c.Dedicated.count(sides[dedicated], s.name); ran && !passed && (passedTenant || !ranTenant) {
			c.OnlyDedicated = append(c.OnlyDedicated, failure{s.name, find(slices.Concat(given.Dedicated, given.Tenant), s.name)})
		}
		if passed, ran := c.DefaultPolicy.count(sides[defaultPolicy], s.name); ran && !passed && (passedTenant || !ranTenant) {
			c.OnlyDefaultPolicy = append(c.OnlyDefaultPolicy, failure{s.name, find(slices.Concat(given.DefaultPolicy, given.Tenant), s.name)})
		}
		switch {
		case ranTenant && !passedTenant && (passedDirect || !ranDirect):
			c.OnlyTenant = append(c.OnlyTenant, failure{s.name, find(given.Tenant, s.name)})
		case ranDirect && !passedDirect && passedTenant:
			c.OnlyDirect = append(c.OnlyDirect, failure{s.name, find(given.Both, s.name)})
		case ranDirect && !passedDirect:
			c.Both = append(c.Both, failure{s.name, find(given.Both, s.name)})
		}
	}
	return c
}

// count adds a spec's result, and returns it.
func (t *tally) count(side *results, name string) (passed, ran bool) {
	passed, ran = side.passed(name)
	if ran {
		t.Ran++
	}
	if passed {
		t.Passed++
	}
	return passed, ran
}

// summarize says how many passed, and what failed through the tenants alone.
func (c comparison) summarize(out console) {
	out.sayf("of %d specs, passed directly %d of %d that ran, through a tenant that shares %d of %d, through a dedicated one %d of %d, "+
		"with the default policy %d of %d", c.Specs, c.Direct.Passed, c.Direct.Ran, c.Shared.Passed, c.Shared.Ran,
		c.Dedicated.Passed, c.Dedicated.Ran, c.DefaultPolicy.Passed, c.DefaultPolicy.Ran)
	for _, f := range c.OnlyTenant {
		out.sayf("  fails through a tenant only: %s", f.Name)
	}
	for _, f := range c.OnlyDedicated {
		out.sayf("  fails through a dedicated tenant only: %s", f.Name)
	}
	for _, f := range c.OnlyDefaultPolicy {
		out.sayf("  fails with the default policy only: %s", f.Name)
	}
}

// err names the specs that fail through a tenant without a reason.
func (c comparison) err() error {
	var errs []error
	for _, f := range slices.Concat(c.OnlyTenant, c.OnlyDedicated, c.OnlyDefaultPolicy) {
		if f.Reason == "" {
			errs = append(errs, fmt.Errorf("fails through a tenant, and reasons.yaml has no reason: %s", f.Name))
		}
	}
	return errors.Join(errs...)
}
