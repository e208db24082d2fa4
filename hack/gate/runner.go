package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// grace is how long a step may take to end when it is told to.
const grace = time.Minute

// runner runs stages.
type runner struct {
	// make runs a target of the Makefile and writes its output. It does not make
	// again what is made. Variables are those of the Makefile.
	make      func(ctx context.Context, out io.Writer, target string, made, variables []string) error
	out       io.Writer
	reports   string
	selection selection
	// earlier are the flaky lines of earlier runs.
	earlier []string
	// made are the targets of the steps that were green.
	made []string
}

// result is what became of a step.
type result struct {
	step
	took time.Duration
	// leftOut says why the step did not run.
	leftOut string
	// err is set for a step that is red.
	err    error
	output string
}

// run runs the stages until one has a step that is red, prints a summary, and
// returns what became of them.
func (r *runner) run(ctx context.Context, stages []stage) verdict {
	began := time.Now()
	var results []result
	v := verdict{Time: began.UTC(), Green: true}
	for _, line := range r.selection.lines() {
		_, _ = fmt.Fprintln(r.out, line)
	}
	for _, stage := range stages {
		for _, step := range stage.steps {
			if r.selection.has(step.target) {
				continue
			}
			_, _ = fmt.Fprintf(r.out, "\n=== %s: %s (%s)\n", stage.name, step.target, time.Now().UTC().Format(time.TimeOnly))
			result := r.step(ctx, step)
			if v.Green = v.Green && result.err == nil; result.err == nil {
				r.made = append(r.made, step.target)
			}
			results = append(results, result)
		}
		if !v.Green {
			break
		}
	}
	v.Red, v.Flaky = summarize(r.out, results, r.selection, r.earlier)
	v.Open, v.Seconds = r.selection.open(areas(), results), time.Since(began).Round(time.Second).Seconds()
	return v
}

// step runs a step, and keeps its output in a file, too.
func (r *runner) step(ctx context.Context, s step) result {
	began := time.Now()
	done := result{step: s}
	if ctx.Err() != nil {
		done.err = context.Cause(ctx)
		return done
	}
	if s.needs != "" {
		var why strings.Builder
		if err := r.make(ctx, &why, s.needs, r.made, nil); err != nil {
			done.leftOut = oneLine(why.String())
			return done
		}
	}
	var output strings.Builder
	file, err := r.log(s)
	if err != nil {
		done.err = err
		return done
	}
	done.err = r.make(ctx, io.MultiWriter(r.out, file, &output), s.target, r.made, r.selection.variables())
	if ctx.Err() != nil {
		done.err = errors.Join(context.Cause(ctx), done.err)
	}
	done.err = errors.Join(done.err, file.Close())
	done.took, done.output = time.Since(began), output.String()
	_, _ = fmt.Fprintf(r.out, "=== %s took %.0f s\n", s.target, done.took.Seconds())
	return done
}

func (r *runner) log(s step) (*os.File, error) {
	if err := os.MkdirAll(r.reports, 0o750); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(r.reports, s.target+".log"))
}

// runMake runs a target in a process group, all of which ends with it.
func runMake(ctx context.Context, out io.Writer, target string, made, variables []string) error {
	args := append([]string{"--no-print-directory", target}, variables...)
	for _, target := range made {
		args = append(args, "--old-file="+target)
	}
	command := exec.CommandContext(ctx, "make", args...) //nolint:gosec // the targets are the table's
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = grace
	if err := command.Start(); err != nil {
		return err
	}
	err := command.Wait()
	if left := syscall.Kill(-command.Process.Pid, syscall.SIGKILL); left != nil && !errors.Is(left, syscall.ESRCH) {
		err = errors.Join(err, left)
	}
	return err
}
