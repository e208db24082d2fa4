package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// run runs what is not in the results yet, and compares the sides.
func run(ctx context.Context, opts *options, out console) error {
	reasons, err := readReasons()
	if err != nil {
		return err
	}
	specs, err := chooseSpecs(ctx, opts)
	if err != nil {
		return err
	}
	results := map[string]*results{}
	for _, side := range allSides() {
		if results[side], err = openResults(filepath.Join(opts.results, side)); err != nil {
			return err
		}
	}
	if err := runMissing(ctx, opts, out, specs, results); err != nil {
		return err
	}
	compared := compare(specs, results, reasons)
	compared.summarize(out)
	if opts.document != "" {
		if err := compared.write(opts.document); err != nil {
			return err
		}
	}
	return compared.err()
}

// chooseSpecs are the specs of the suite that the options ask for.
func chooseSpecs(ctx context.Context, opts *options) ([]spec, error) {
	focus, err := regexp.Compile(opts.focus)
	if err != nil {
		return nil, fmt.Errorf("--focus: %w", err)
	}
	// The suite has a working directory of its own.
	if opts.binaries, err = filepath.Abs(opts.binaries); err != nil {
		return nil, err
	}
	specs, err := listSpecs(ctx, opts.file("e2e.test"))
	if err != nil {
		return nil, err
	}
	specs = slices.DeleteFunc(specs, func(s spec) bool { return !focus.MatchString(s.name) })
	if len(specs) == 0 {
		return nil, fmt.Errorf("no spec of the suite matches --focus %q", opts.focus)
	}
	return specs, nil
}

// runMissing runs the specs that have no result yet, one side after the other.
func runMissing(ctx context.Context, opts *options, out console, specs []spec, results map[string]*results) error {
	missing := map[string][]spec{}
	for _, side := range opts.sides {
		have, known := results[side]
		if !known {
			return fmt.Errorf("--on is %q: it must be one of %s", side, strings.Join(allSides(), ", "))
		}
		if todo := have.missing(specs, opts.failed); len(todo) > 0 {
			missing[side] = todo
		}
	}
	if len(missing) == 0 {
		return nil
	}
	clusters, err := startClusters(ctx, opts)
	if err != nil {
		return err
	}
	defer clusters.stop(out)
	for _, side := range opts.sides {
		if err := runBatches(ctx, opts, out, clusters.suite(side), missing[side], results[side]); err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
	}
	return nil
}

// runBatches runs specs on one side and keeps the results of each batch.
func runBatches(ctx context.Context, opts *options, out console, suite suite, todo []spec, results *results) error {
	started, left := time.Now(), len(todo)
	for _, batch := range batches(todo, opts.batch, opts.procs) {
		out.sayf("%s: %d specs to go, after %s", suite.side, left, time.Since(started).Round(time.Second))
		report, err := suite.run(ctx, batch, out)
		if err != nil {
			return err
		}
		if err := results.keep(report); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		left -= len(batch)
	}
	return results.writeJUnit()
}
