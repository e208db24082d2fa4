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
	"runtime"
	"syscall"
	"time"
)

func main() {
	all := flag.Bool("all", false, "run also the tests of what was green here and has not changed since")
	full := flag.Bool("full", false, "run all, and what is slow, too")
	budget := flag.Duration("budget", 80*time.Minute, "the time after which the run ends itself, with its summary; 0 is none")
	reports := flag.String("reports", "bin/reports", "the folder for the steps' output")
	commit := flag.String("commit", "", "what is tested, for the history of runs")
	seed := flag.String("seed", "", "the order of the specs, for the same")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *budget > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, *budget, fmt.Errorf("the run took longer than %v", *budget))
	}
	v, err := run(ctx, &runner{make: runMake, out: os.Stdout, reports: *reports}, *all || *full, verdict{
		Commit: *commit, Go: runtime.Version(), Seed: *seed, Full: *full,
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
	if !v.Green || err != nil {
		os.Exit(1)
	}
}

// run runs the gate, adds what became of it to what is known of the run, and that
// to the history.
func run(ctx context.Context, r *runner, all bool, known verdict) (verdict, error) {
	past, err := newHistory()
	if err != nil {
		return verdict{}, err
	}
	runs, err := past.runs()
	if err != nil {
		return verdict{}, err
	}
	for _, v := range runs {
		r.earlier = append(r.earlier, v.Flaky...)
	}
	clean, err := committed(ctx)
	if err != nil {
		return verdict{}, err
	}
	if !all {
		if r.selection, err = choice(ctx, areas(), runs, known.Go); err != nil {
			return verdict{}, err
		}
	}
	stages := gate()
	if known.Full {
		stages = append(stages, slow())
	}
	v := r.run(ctx, stages)
	v.Go, v.Seed, v.Full = known.Go, known.Seed, known.Full
	if clean {
		v.Commit = known.Commit
	}
	load, _ := os.ReadFile("/proc/loadavg") // which other systems do not have
	v.Load = oneLine(string(load))
	_, _ = fmt.Fprintf(r.out, "=== %v\n", v)
	return v, past.add(v)
}
