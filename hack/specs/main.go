// Specs runs suites of Ginkgo, and what failed of them once more:
//
//	go run ./hack/specs --reports bin/reports --seed 7 ./test/escapes -- --procs 3
//
// A suite is built first, once for all its attempts. Each top-level container with a failed spec runs again, whole and alone, in a
// process of its own: Ginkgo's own attempts would repeat one spec of an ordered
// container on what the first attempt left behind. If all pass, the suite has
// passed, with a line for each that starts with FLAKY; for an attack, which a
// tenant needs to get through only once, with FINDING. More than a few failures,
// data races, processes that died and failures outside of specs have no second
// attempt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	reports := flag.String("reports", "bin/reports", "the folder for reports, and for what the race detector writes")
	seed := flag.String("seed", "1", "the order of the specs")
	race := flag.Bool("race", false, "build the suites with the race detector")
	budget := flag.Duration("budget", 0, "the CPU time that a suite may take, with all that it starts; 0 is any")
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
		s := &suite{name: filepath.Base(folder), reports: *reports, seed: *seed, budget: *budget, out: os.Stdout}
		if err := runFolder(ctx, s, folder, *race, flags); err != nil {
			fmt.Println(err)
			green = false
		}
	}
	stop()
	if !green {
		os.Exit(1)
	}
}

// runFolder runs the suite of a folder. It is built into the folder, since specs
// run where their program is.
func runFolder(ctx context.Context, s *suite, folder string, race bool, flags []string) error {
	program := filepath.Join(folder, s.name+".test")
	build := []string{"build", "--vet=off", "-o", program}
	if race {
		build = append(build, "--race")
	}
	if _, err := ginkgo(ctx, append(build, folder)...); err != nil {
		return s.red(fmt.Errorf("does not build: %w", err))
	}
	s.ginkgo = func(ctx context.Context, more ...string) (time.Duration, error) {
		return ginkgo(ctx, slices.Concat([]string{"run"}, flags, more, []string{program})...)
	}
	err := s.run(ctx)
	if left := os.Remove(program); left != nil {
		err = errors.Join(err, s.red(left))
	}
	return err
}

// ginkgo runs Ginkgo, and returns the CPU time that it and all that it started
// took. When the context ends, so do its specs and what they started, which
// takes a moment.
func ginkgo(ctx context.Context, args ...string) (time.Duration, error) {
	//nolint:gosec // the arguments are the developer's
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"tool", "ginkgo"}, args)...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	err := command.Run()
	if command.ProcessState == nil {
		return 0, err
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), err
}
