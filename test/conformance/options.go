package main

import (
	"path/filepath"

	"github.com/spf13/pflag"
)

// options are the settings of a run.
type options struct {
	// binaries is where make puts what is built.
	binaries string
	// results is the directory of each spec's result, which allows a run to
	// continue.
	results string
	// sides are where the suite is run.
	sides []string
	// focus restricts the specs to those whose names match.
	focus string
	// failed has the specs that failed run again.
	failed bool
	// procs is how many specs run at the same time, and batch after how many of
	// them results are kept.
	procs, batch int
	// rivals has the suite run in two tenants at once that share a handler
	// chain, while an oracle checks the keys of every request.
	rivals bool
	// document is the file to write the comparison to; empty for none.
	document string
}

// The sides.
const (
	// direct is the super cluster.
	direct = "direct"
	// shared is a tenant whose policy allows everything that the suite's pods
	// request, and which shares a handler chain with others.
	shared = "shared"
	// dedicated is the same with a handler chain of its own.
	dedicated = "dedicated"
	// defaultPolicy is a tenant whose VirtualCluster has no policy.
	defaultPolicy = "default-policy"
	// converted is a tenant without a control plane, whose policy allows the same
	// as that of shared.
	converted = "converted"
)

// allSides are the sides in the order in which they run.
func allSides() []string { return append([]string{direct, shared}, otherTenants()...) }

// otherTenants are the sides that are held against the shared tenant.
func otherTenants() []string { return []string{dedicated, defaultPolicy, converted} }

func defaultOptions() *options {
	here := filepath.Join("test", "conformance")
	return &options{
		binaries: "bin", results: filepath.Join(here, "results"), sides: allSides(), procs: 8, batch: 64,
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.binaries, "binaries", o.binaries, "directory that make conformance-suite built into")
	flags.StringVar(&o.results, "results", o.results, "directory of results; what is in it is not run again")
	flags.StringSliceVar(&o.sides, "on", o.sides, "where to run the suite: direct, in the super cluster; through a tenant whose handler chain is shared or dedicated; "+
		"through one with the default-policy; or through a converted one. Empty to compare the results that exist")
	flags.StringVar(&o.focus, "focus", o.focus, "regular expression that the names of specs must match; empty for all")
	flags.BoolVar(&o.failed, "failed", o.failed, "run those again that failed")
	flags.IntVar(&o.procs, "procs", o.procs, "how many specs run at the same time")
	flags.IntVar(&o.batch, "batch", o.batch, "after how many specs results are kept")
	flags.BoolVar(&o.rivals, "rivals", o.rivals, "run the suite in two tenants at once that share a handler chain, on simulated nodes, "+
		"while an oracle checks the keys of every request")
	flags.StringVar(&o.document, "document", o.document, "file to write the comparison to")
}

func (o *options) file(name string) string { return filepath.Join(o.binaries, "conformance", name) }
