// Gate runs what a change has to pass, and ends with a summary of it:
//
//	go run ./hack/gate          what every change has to pass
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
	full := flag.Bool("full", false, "run what is slow, too")
	budget := flag.Duration("budget", 80*time.Minute, "the time after which the run ends itself, with its summary; 0 is none")
	reports := flag.String("reports", "bin/reports", "the folder for the steps' output and for flaky.jsonl")
	commit := flag.String("commit", "", "what is tested, for flaky.jsonl")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *budget > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, *budget, fmt.Errorf("the run took longer than %v", *budget))
	}
	stages := gate()
	if *full {
		stages = append(stages, slow())
	}
	green := (&runner{make: runMake, out: os.Stdout, reports: *reports, commit: *commit}).run(ctx, stages)
	stop()
	if !green {
		os.Exit(1)
	}
}
