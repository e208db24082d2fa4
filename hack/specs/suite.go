package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// suite is a suite of Ginkgo that has two attempts.
type suite struct {
	name, reports, seed string
	// budget is the CPU time that the first attempt may take. It does not depend on
	// what else the machine does.
	budget time.Duration
	out    io.Writer
	// ginkgo runs the suite with more flags, and fails if the suite does. It returns
	// the CPU time that it took.
	ginkgo func(ctx context.Context, flags ...string) (time.Duration, error)
}

// red returns an error of the suite that is none of one container, as a line for
// the summary.
func (s *suite) red(err error) error { return fmt.Errorf("RED %s: %w", s.name, err) }

// redContainer returns one of a container.
func (s *suite) redContainer(c *container, err error) error {
	return fmt.Errorf("RED %s %s: %w: %s", s.name, c, err, c.failure)
}

// run runs the suite. An error has a line for each container that is broken, and
// one for what else is.
func (s *suite) run(ctx context.Context) error {
	if err := s.removeRaces(); err != nil {
		return s.red(err)
	}
	first, err := s.attempt(ctx, s.name)
	if err != nil {
		return s.red(err)
	}
	_, _ = fmt.Fprintf(s.out, "COST %s: %.0f s of CPU in %.0f s\n", s.name, first.cost.Seconds(), first.report.RunTime.Seconds())
	for i, c := range containers(first.report) {
		if i == slowest {
			break
		}
		_, _ = fmt.Fprintf(s.out, "SLOW %s %s: %.0f s\n", s.name, c, c.took.Seconds())
	}
	if ctx.Err() != nil {
		return s.red(context.Cause(ctx))
	}
	if s.budget > 0 && first.cost > s.budget {
		err = s.red(fmt.Errorf("%v of CPU are more than its budget of %v: its specs have to be cheaper, or fewer",
			first.cost.Round(time.Second), s.budget))
	}
	if first.failed != nil {
		err = errors.Join(err, s.runAgain(ctx, first.report))
	}
	return err
}

// runAgain runs the failed containers of a report for the second time, each alone.
func (s *suite) runAgain(ctx context.Context, report types.Report) error {
	failed, err := again(report)
	if len(failed) == 0 {
		return s.red(err)
	}
	var errs []error
	for i, c := range failed {
		if err != nil {
			errs = append(errs, s.redContainer(c, err))
			continue
		}
		_, _ = fmt.Fprintf(s.out, "\nThe second attempt of %s %s. The first one: %s\n", s.name, c, c.failure)
		if err := s.second(ctx, fmt.Sprintf("%s-again-%d", s.name, i), c); err != nil {
			errs = append(errs, s.redContainer(c, fmt.Errorf("failed twice: %w; the first time", err)))
			continue
		}
		word := "FLAKY"
		if c.attack {
			word = "FINDING"
		}
		_, _ = fmt.Fprintf(s.out, "%s %s %s: %s (seed %s)\n", word, s.name, c, c.failure, s.seed)
	}
	return errors.Join(errs...)
}

// second runs a container for the second time.
func (s *suite) second(ctx context.Context, name string, failed *container) error {
	second, err := s.attempt(ctx, name, "--procs=1", fmt.Sprintf("--focus-file=/%s:%d", failed.file, failed.line))
	if err != nil {
		return err
	}
	ran := containers(second.report)
	for _, c := range ran {
		if c.failure != "" {
			return errors.New(c.failure)
		}
	}
	if second.failed == nil && len(ran) == 0 {
		return errors.New("no spec ran")
	}
	return second.failed
}

// attempt is what became of a suite that has run.
type attempt struct {
	report types.Report
	cost   time.Duration
	// failed is set if the suite failed.
	failed error
}

// attempt runs the suite. Data races are an error, also of a process that died
// before its report.
func (s *suite) attempt(ctx context.Context, name string, flags ...string) (done attempt, err error) {
	file := filepath.Join(s.reports, name+".json")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	flags = append(flags, "--seed="+s.seed, "--output-dir="+s.reports, "--json-report="+name+".json")
	done.cost, done.failed = s.ginkgo(ctx, flags...)
	if err = s.races(); err == nil {
		done.report, err = readReport(file)
	}
	if err != nil {
		err = errors.Join(done.failed, err)
	}
	return done, err
}

// racesPattern is that of the files which the race detector writes: GORACE has
// log_path=races, beside the reports. It does not write to the output, since
// each of Ginkgo's parallel processes reads its own output through a pipe, and
// the detector stops the whole process while it writes: a report that does not
// fit into the pipe would block it for good.
func (s *suite) racesPattern() string { return filepath.Join(s.reports, "races.*") }

func (s *suite) removeRaces() error {
	if err := os.MkdirAll(s.reports, 0o750); err != nil {
		return err
	}
	files, err := filepath.Glob(s.racesPattern())
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// races returns the reports of the race detector as an error.
func (s *suite) races() error {
	files, err := filepath.Glob(s.racesPattern())
	if err != nil || len(files) == 0 {
		return err
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all.Write(data)
	}
	return fmt.Errorf("a data race:\n%s", all.String())
}
