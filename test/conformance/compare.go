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
// well; and through another tenant and not through the shared one, by its side.
type reasons struct {
	Tenant []reason            `json:"tenant"`
	Both   []reason            `json:"both"`
	Others map[string][]reason `json:"others"`
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
// directly and not through it. OnlyOther fail through another tenant, by its
// side, and not through the shared one.
type comparison struct {
	Specs                        int
	Tallies                      map[string]tally
	OnlyTenant, OnlyDirect, Both []failure
	OnlyOther                    map[string][]failure
}

// compare holds the results of the sides against each other. A side without
// results has not run.
func compare(specs []spec, sides map[string]*results, given reasons) comparison {
	c := comparison{Specs: len(specs), Tallies: map[string]tally{}, OnlyOther: map[string][]failure{}}
	for _, s := range specs {
		passedDirect, ranDirect := c.count(sides, direct, s.name)
		passedTenant, ranTenant := c.count(sides, shared, s.name)
		for _, side := range otherTenants() {
			if passed, ran := c.count(sides, side, s.name); ran && !passed && (passedTenant || !ranTenant) {
				c.OnlyOther[side] = append(c.OnlyOther[side], failure{s.name, find(slices.Concat(given.Others[side], given.Tenant), s.name)})
			}
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

// count adds a spec's result on a side, and returns it.
func (c comparison) count(sides map[string]*results, side, name string) (passed, ran bool) {
	passed, ran = sides[side].passed(name)
	t := c.Tallies[side]
	if ran {
		t.Ran++
	}
	if passed {
		t.Passed++
	}
	c.Tallies[side] = t
	return passed, ran
}

// summarize says how many passed, and what failed through the tenants alone.
func (c comparison) summarize(out console) {
	for _, side := range allSides() {
		out.sayf("%s: passed %d of %d that ran, of %d specs", side, c.Tallies[side].Passed, c.Tallies[side].Ran, c.Specs)
	}
	for _, f := range c.OnlyTenant {
		out.sayf("  fails through a tenant only: %s", f.Name)
	}
	for _, side := range otherTenants() {
		for _, f := range c.OnlyOther[side] {
			out.sayf("  fails on the side %s only: %s", side, f.Name)
		}
	}
}

// err names the specs that fail through a tenant without a reason.
func (c comparison) err() error {
	failures := slices.Clone(c.OnlyTenant)
	for _, side := range otherTenants() {
		failures = append(failures, c.OnlyOther[side]...)
	}
	var errs []error
	for _, f := range failures {
		if f.Reason == "" {
			errs = append(errs, fmt.Errorf("fails through a tenant, and reasons.yaml has no reason: %s", f.Name))
		}
	}
	return errors.Join(errs...)
}
