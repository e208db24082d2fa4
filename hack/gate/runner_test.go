package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake is a runner whose targets print something and may fail.
func fake(t *testing.T, out io.Writer, targets map[string]string, failed ...string) (*runner, *[]string) {
	t.Helper()
	ran := &[]string{}
	return &runner{out: out, reports: t.TempDir(), make: func(_ context.Context, w io.Writer, target string, _, _ []string) error {
		*ran = append(*ran, target)
		_, _ = io.WriteString(w, targets[target])
		if slices.Contains(failed, target) {
			return errors.New("exit status 2")
		}
		return nil
	}}, ran
}

func TestStages(t *testing.T) {
	stages := []stage{{"checks", targets("words", "format")}, {"tests", append(targets("unit"), step{target: "node", needs: "root"})}}
	for name, tc := range map[string]struct {
		failed, ran []string
		green       bool
		out         string
	}{
		"green":                 {ran: []string{"words", "format", "unit", "root", "node"}, green: true, out: "green       0 s  format"},
		"all steps of a stage":  {failed: []string{"words"}, ran: []string{"words", "format"}, out: "red         0 s  words"},
		"what cannot run":       {failed: []string{"root"}, ran: []string{"words", "format", "unit", "root"}, green: true, out: "SKIPPED node: a real node needs root"},
		"the reason by its end": {failed: []string{"unit"}, ran: []string{"words", "format", "unit", "root", "node"}, out: "RED unit: no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			r, ran := fake(t, out, map[string]string{"unit": "ok\nno reason\n", "root": "a real node\n needs root\n"}, tc.failed...)
			if got := r.run(t.Context(), stages); got.Green != tc.green {
				t.Errorf("got %v", got)
			}
			if !slices.Equal(*ran, tc.ran) {
				t.Errorf("got %q, want %q", *ran, tc.ran)
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("got %s, want %q", out, tc.out)
			}
		})
	}
}

// TestEveryStepIsATarget: what the table lists is in the Makefile.
func TestEveryStepIsATarget(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range append(gate(), slow()) {
		for _, step := range stage.steps {
			for _, target := range []string{step.target, step.needs} {
				if target != "" && !strings.Contains(string(makefile), "\n"+target+":") {
					t.Errorf("the Makefile has no target %s", target)
				}
			}
		}
	}
}

func TestSummary(t *testing.T) {
	failed := "=== Failed\n=== FAIL: internal/x TestY (0.01s)\n    y_test.go:3: got 1\n"
	specs := "FLAKY integration a_test.go:1 \"A\": slow\nFINDING escapes b_test.go:2 \"B\": read\n" +
		"COST integration: 9 s of CPU in 5 s\nSLOW integration a_test.go:1 \"A\": 9 s\nRED integration c_test.go:3 \"C\": no\n"
	for name, tc := range map[string]struct {
		failed     bool
		has        []string
		hasNot     []string
		red, flaky int
	}{
		"green": {
			has: []string{
				"FLAKY integration", "FINDING escapes", "COST integration", "SLOW integration", "FLAKY internal/x TestY (0.01s) y_test.go:3: got 1",
				`AGAIN integration a_test.go "A": flaky in 2 of the last runs`, "AGAIN internal/x TestY: flaky in 1 ",
			},
			hasNot: []string{"RED integration", "=== FAIL", "AGAIN escapes"},
			flaky:  3,
		},
		"red": {
			failed: true,
			has:    []string{`RED integration c_test.go:3 "C": no`, "=== FAIL: internal/x TestY (0.01s) y_test.go:3: got 1", "FLAKY integration"},
			hasNot: []string{"FLAKY internal/x"},
			red:    2, flaky: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			var red []string
			if tc.failed {
				red = append(red, "unit")
			}
			r, _ := fake(t, out, map[string]string{"unit": specs + failed + failed}, red...)
			r.earlier = []string{
				`FLAKY integration a_test.go:7 "A": late`, `FLAKY integration a_test.go:1 "A": late`, "FLAKY internal/x TestY (9.00s) y_test.go:3: got 2",
				`FINDING escapes c_test.go:2 "B": read`,
			}
			v := r.run(t.Context(), []stage{{"tests", targets("unit")}})
			_, summary, _ := strings.Cut(out.String(), "=== summary")
			for _, want := range tc.has {
				if strings.Count(summary, want) != 1 {
					t.Errorf("got %s, want %q once", summary, want)
				}
			}
			for _, want := range tc.hasNot {
				if strings.Contains(summary, want) {
					t.Errorf("got %s, want no %q", summary, want)
				}
			}
			if len(v.Red) != tc.red || len(v.Flaky) != tc.flaky {
				t.Errorf("got %q and %q, want %d and %d lines", v.Red, v.Flaky, tc.red, tc.flaky)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &strings.Builder{}
	r, ran := fake(t, out, nil)
	before := r.make
	r.make = func(ctx context.Context, w io.Writer, target string, made, variables []string) error {
		cancel(errors.New("the run took longer than 1h0m0s"))
		return before(ctx, w, target, made, variables)
	}
	if r.run(ctx, []stage{{"tests", targets("unit", "specs")}}).Green {
		t.Error("got green")
	}
	if !slices.Equal(*ran, []string{"unit"}) || strings.Count(out.String(), "the run took longer than 1h0m0s") < 2 {
		t.Errorf("ran %q: %s", *ran, out)
	}
}

// TestNothingIsLeftOfATarget: what a target has started ends with it.
func TestNothingIsLeftOfATarget(t *testing.T) {
	t.Chdir(t.TempDir())
	makefile := "hangs:\n\t@sleep 600 & echo $$! >$@.pid; wait\nleaves:\n\t@sleep 600 >/dev/null 2>&1 & echo $$! >$@.pid\n"
	if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, fails := range map[string]bool{"hangs": true, "leaves": false} {
		t.Run(target, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if fails {
				go func() {
					defer cancel()
					_ = eventually(t, func() bool { return pidOf(target) != "" })
				}()
			}
			if err := runMake(ctx, io.Discard, target, nil, nil); (err != nil) != fails {
				t.Errorf("got %v", err)
			}
			pid := pidOf(target)
			if pid == "" || !eventually(t, func() bool {
				command, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
				return err != nil || len(command) == 0
			}) {
				t.Errorf("process %q goes on", pid)
			}
		})
	}
}

// pidOf is the process that a target of the test has started.
func pidOf(target string) string {
	pid, _ := os.ReadFile(target + ".pid")
	return strings.TrimSpace(string(pid))
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool) bool {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

// TestNothingIsMadeTwice: what one step has made, the next one does not make again.
func TestNothingIsMadeTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	makefile := ".PHONY: build test\nbuild:\n\t@echo builds\ntest: build\n\t@echo tests\n"
	if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	r := &runner{make: runMake, out: out, reports: t.TempDir()}
	if !r.run(t.Context(), []stage{{"build", targets("build")}, {"tests", targets("test")}}).Green {
		t.Error("got red")
	}
	if strings.Count(out.String(), "builds\n") != 1 || strings.Count(out.String(), "tests\n") != 1 {
		t.Errorf("got %s", out)
	}
}
