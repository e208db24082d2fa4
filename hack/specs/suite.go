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

	"github.com/onsi/ginkgo/v2/types"
)

// suite is a suite of Ginkgo that has two attempts.
type suite struct {
	name, reports, seed string
	out                 io.Writer
	// ginkgo runs the suite with more flags, and fails if the suite does.
	ginkgo func(ctx context.Context, flags ...string) error
}

// run runs the suite. An error says what is broken.
func (s *suite) run(ctx context.Context) error {
	if err := s.removeRaces(); err != nil {
		return err
	}
	report, failed, err := s.attempt(ctx, s.name)
	if err != nil {
		return err
	}
	for i, c := range containers(report) {
		if i == slowest {
			break
		}
		_, _ = fmt.Fprintf(s.out, "SLOW %s %s: %.0f s\n", s.name, c, c.took.Seconds())
	}
	if failed == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	repeated, err := again(report)
	if err != nil {
		return err
	}
	return s.runAgain(ctx, repeated)
}

// runAgain runs containers for the second time, each alone.
func (s *suite) runAgain(ctx context.Context, failed []*container) error {
	var errs []error
	for i, c := range failed {
		_, _ = fmt.Fprintf(s.out, "\nThe second attempt of %s %s. The first one: %s\n", s.name, c, c.failure)
		if err := s.second(ctx, fmt.Sprintf("%s-again-%d", s.name, i), c); err != nil {
			errs = append(errs, fmt.Errorf("%s failed twice: %w; the first time: %s", c, err, c.failure))
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
	report, err, broken := s.attempt(ctx, name, "--procs=1", fmt.Sprintf("--focus-file=/%s:%d", failed.file, failed.line))
	if broken != nil {
		return broken
	}
	ran := containers(report)
	for _, c := range ran {
		if c.failure != "" {
			return errors.New(c.failure)
		}
	}
	if err == nil && len(ran) == 0 {
		return errors.New("no spec ran")
	}
	return err
}

// attempt runs the suite and returns its report, and in failed that it failed.
// Data races are an error, also of a process that died before its report.
func (s *suite) attempt(ctx context.Context, name string, flags ...string) (report types.Report, failed, err error) {
	file := filepath.Join(s.reports, name+".json")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return report, nil, err
	}
	flags = append(flags, "--seed="+s.seed, "--output-dir="+s.reports, "--json-report="+name+".json")
	failed = s.ginkgo(ctx, flags...)
	if err = s.races(); err == nil {
		report, err = readReport(file)
	}
	if err != nil {
		err = errors.Join(failed, err)
	}
	return report, failed, err
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
