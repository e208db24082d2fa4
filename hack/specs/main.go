// Specs runs suites of Ginkgo, and what failed of them once more:
//
//	go run ./hack/specs --reports bin/reports --seed 7 ./test/escapes -- --procs 3
//
// Each top-level container with a failed spec runs again, whole and alone, in a
// process of its own: Ginkgo's own attempts would repeat one spec of an ordered
// container on what the first attempt left behind. If all pass, the suite has
// passed, with a line for each that starts with FLAKY; for an attack, which a
// tenant needs to get through only once, with FINDING. More than a few failures,
// data races, processes that died and failures outside of specs have no second
// attempt.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	reports := flag.String("reports", "bin/reports", "the folder for reports, and for what the race detector writes")
	seed := flag.String("seed", "1", "the order of the specs")
	flag.Parse()
	folders, flags := flag.Args(), []string(nil)
	if i := slices.Index(folders, "--"); i >= 0 {
		folders, flags = folders[:i], folders[i+1:]
	}
	if len(folders) == 0 {
		fmt.Fprintln(os.Stderr, "specs: expected the folders of suites, and then -- and Ginkgo's flags")
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	green := true
	for _, folder := range folders {
		s := &suite{
			name: filepath.Base(folder), reports: *reports, seed: *seed, out: os.Stdout,
			ginkgo: func(ctx context.Context, more ...string) error {
				return ginkgo(ctx, folder, slices.Concat(flags, more))
			},
		}
		if err := s.run(ctx); err != nil {
			fmt.Printf("RED %s: %v\n", s.name, err)
			green = false
		}
	}
	stop()
	if !green {
		os.Exit(1)
	}
}

// ginkgo runs a suite. When the context ends, so do its specs and what they
// started, which takes a moment.
func ginkgo(ctx context.Context, folder string, flags []string) error {
	//nolint:gosec // the flags are the developer's
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"tool", "ginkgo"}, flags, []string{folder})...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	return command.Run()
}
