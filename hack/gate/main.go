// Gate runs what a change has to pass, and ends with a summary of it:
//
//	go run ./hack/gate          what every change has to pass
//	go run ./hack/gate --all    also what the change does not concern
//	go run ./hack/gate --full   and what is slow, by design or by a detector
//
// A step is a target of the Makefile. All steps of a stage run, so that one run
// shows all that is red; the next stage needs this one to be green.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	all := flag.Bool("all", false, "run also the tests of what has not changed since the last commit that was green here")
	full := flag.Bool("full", false, "run all, and what is slow, too")
	budget := flag.Duration("budget", 80*time.Minute, "the time after which the run ends itself, with its summary; 0 is none")
	reports := flag.String("reports", "bin/reports", "the folder for the steps' output and for flaky.jsonl")
	commit := flag.String("commit", "", "what is tested, for flaky.jsonl and for the next run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *budget > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, *budget, fmt.Errorf("the run took longer than %v", *budget))
	}
	green, err := run(ctx, &runner{make: runMake, out: os.Stdout, reports: *reports, commit: *commit}, *all || *full, *full)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
	if !green || err != nil {
		os.Exit(1)
	}
}

// run runs the gate, and remembers the commit if it is green.
func run(ctx context.Context, r *runner, all, full bool) (bool, error) {
	known, err := newRecord()
	if err != nil {
		return false, err
	}
	clean, err := committed(ctx)
	if err != nil {
		return false, err
	}
	if !all {
		if r.selection, err = choice(ctx, known); err != nil {
			return false, err
		}
	}
	stages := gate()
	if full {
		stages = append(stages, slow())
	}
	green := r.run(ctx, stages)
	if green && clean && r.commit != "" {
		err = known.add(r.commit)
	}
	return green, err
}
