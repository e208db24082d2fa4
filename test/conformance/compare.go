package main

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// reason says why specs fail.
type reason struct {
	// Specs are the full names of the specs.
	Specs  []string `json:"specs"`
	Reason string   `json:"reason"`
}

// reasons are why specs fail: where only a tenant's does, and where it does on both sides.
type reasons struct {
	Tenant []reason `json:"tenant"`
	Both   []reason `json:"both"`
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

// comparison is what both sides have come to: OnlyTenant has what fails through a tenant only, OnlyDirect what fails directly only.
type comparison struct {
	Specs                        int
	RanDirect, RanTenant         int
	PassedDirect, PassedTenant   int
	OnlyTenant, OnlyDirect, Both []failure
}

// compare holds the results of both sides against each other. A side without results has not run.
func compare(specs []spec, onDirect, onTenant *results, given reasons) comparison {
	c := comparison{Specs: len(specs)}
	for _, s := range specs {
		passedDirect, ranDirect := onDirect.passed(s.name)
		passedTenant, ranTenant := onTenant.passed(s.name)
		c.RanDirect += count(ranDirect)
		c.RanTenant += count(ranTenant)
		c.PassedDirect += count(passedDirect)
		c.PassedTenant += count(passedTenant)
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

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// summarize says how many passed, and what failed through the tenant alone.
func (c comparison) summarize(out console) {
	out.sayf("of %d specs, passed directly %d of %d that ran, through a tenant %d of %d",
		c.Specs, c.PassedDirect, c.RanDirect, c.PassedTenant, c.RanTenant)
	for _, f := range c.OnlyTenant {
		out.sayf("  fails through a tenant only: %s", f.Name)
	}
}

// err names the specs that fail through a tenant without a reason.
func (c comparison) err() error {
	var errs []error
	for _, f := range c.OnlyTenant {
		if f.Reason == "" {
			errs = append(errs, fmt.Errorf("fails through a tenant, and reasons.yaml does not say why: %s", f.Name))
		}
	}
	return errors.Join(errs...)
}
