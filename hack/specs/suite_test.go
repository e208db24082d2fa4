package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

var errFailed = errors.New("exit status 1")

// spec is a spec of a container, which is one line further than its file says.
func spec(file, text string, state types.SpecState, labels ...string) types.SpecReport {
	at := types.CodeLocation{FileName: "example.com/suite/" + file, LineNumber: 7}
	return types.SpecReport{
		ContainerHierarchyTexts: []string{"In " + file}, ContainerHierarchyLocations: []types.CodeLocation{at},
		LeafNodeType: types.NodeTypeIt, LeafNodeText: text, LeafNodeLocation: at, LeafNodeLabels: labels, State: state,
		Failure: types.Failure{Message: "expected\n  one", Location: at},
	}
}

// run runs a suite of which each attempt has a report. A failed spec fails it.
func run(t *testing.T, prepare func(folder string), attempts ...types.Report) (out string, calls [][]string, err error) {
	t.Helper()
	var written strings.Builder
	s := &suite{name: "escapes", reports: t.TempDir(), seed: "7", out: &written}
	s.ginkgo = func(_ context.Context, flags ...string) (time.Duration, error) {
		if len(calls) == len(attempts) {
			t.Fatalf("unexpected attempt %q", flags)
		}
		report := attempts[len(calls)]
		calls = append(calls, flags)
		if prepare != nil {
			prepare(s.reports)
		}
		name := flags[slices.IndexFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--json-report=") })]
		data, err := json.Marshal([]types.Report{report})
		if err == nil {
			err = os.WriteFile(filepath.Join(s.reports, strings.TrimPrefix(name, "--json-report=")), data, 0o600)
		}
		if err == nil && !report.SuiteSucceeded {
			err = errFailed
		}
		return time.Minute, err
	}
	err = s.run(t.Context())
	return written.String(), calls, err
}

func green(specs ...types.SpecReport) types.Report {
	return types.Report{SuiteSucceeded: true, SpecReports: specs}
}

func red(specs ...types.SpecReport) types.Report { return types.Report{SpecReports: specs} }

func TestAttempts(t *testing.T) {
	passed, failed := types.SpecStatePassed, types.SpecStateFailed
	race := func(folder string) {
		_ = os.WriteFile(filepath.Join(folder, "races.1"), []byte("DATA RACE at x.go"), 0o600)
	}
	before := types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite, State: failed, Failure: types.Failure{Message: "no cluster"}}
	for name, tc := range map[string]struct {
		prepare  func(string)
		attempts []types.Report
		// out has what the output has to contain, and err the error.
		out, err string
	}{
		"green":         {attempts: []types.Report{green(spec("a_test.go", "works", passed))}, out: `SLOW escapes a_test.go:7 "In a_test.go": 0 s`},
		"flaky":         {attempts: []types.Report{red(spec("a_test.go", "works", failed)), green(spec("a_test.go", "works", passed))}, out: "FLAKY escapes a_test.go:7 \"In a_test.go\": works [failed] at a_test.go:7: expected one (seed 7)"},
		"timed out":     {attempts: []types.Report{red(spec("a_test.go", "works", types.SpecStateTimedout)), green(spec("a_test.go", "works", passed))}, out: "FLAKY escapes"},
		"an attack":     {attempts: []types.Report{red(spec("a_test.go", "reads", failed, attackLabel)), green(spec("a_test.go", "reads", passed))}, out: "FINDING escapes a_test.go:7"},
		"red":           {attempts: []types.Report{red(spec("a_test.go", "works", failed)), red(spec("a_test.go", "works", failed))}, err: "failed twice"},
		"no spec again": {attempts: []types.Report{red(spec("a_test.go", "works", failed)), green()}, err: "no spec ran"},
		"one of two": {
			attempts: []types.Report{
				red(spec("a_test.go", "works", failed), spec("b_test.go", "works", failed)),
				red(spec("a_test.go", "works", failed)), green(spec("b_test.go", "works", passed)),
			},
			out: "FLAKY escapes b_test.go", err: `RED escapes a_test.go:7 "In a_test.go": failed twice: works [failed]`,
		},
		"many": {
			attempts: []types.Report{red(spec("a_test.go", "w", failed), spec("b_test.go", "w", failed), spec("c_test.go", "w", failed), spec("d_test.go", "w", failed))},
			err:      "RED escapes d_test.go:7 \"In d_test.go\": failed, as did more than 3, which have no second attempt: w [failed]",
		},
		"before the suite":             {attempts: []types.Report{red(before, spec("a_test.go", "works", failed))}, err: "RED escapes: BeforeSuite"},
		"out of time":                  {attempts: []types.Report{{SpecialSuiteFailureReasons: []string{"Suite Timeout Elapsed"}, SpecReports: types.SpecReports{spec("a_test.go", "works", failed)}}}, err: "Suite Timeout Elapsed"},
		"a process died":               {attempts: []types.Report{red(spec("a_test.go", "works", passed))}, err: "a process died"},
		"a race":                       {prepare: race, attempts: []types.Report{red(spec("a_test.go", "works", failed))}, err: "DATA RACE at x.go"},
		"a race without a failed spec": {prepare: race, attempts: []types.Report{red(spec("a_test.go", "works", passed))}, err: "DATA RACE at x.go"},
		"a race in the second attempt": {
			prepare: func(folder string) {
				if _, err := os.Stat(filepath.Join(folder, "escapes.json")); err == nil {
					race(folder)
				}
			},
			attempts: []types.Report{red(spec("a_test.go", "works", failed)), green(spec("a_test.go", "works", passed))}, err: "DATA RACE at x.go",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, calls, err := run(t, tc.prepare, tc.attempts...)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got error %v, want %q", err, tc.err)
			}
			if !strings.Contains(out, tc.out) {
				t.Errorf("got output %q, want %q", out, tc.out)
			}
			if len(calls) != len(tc.attempts) {
				t.Errorf("got %d attempts, want %d", len(calls), len(tc.attempts))
			}
			for _, flags := range calls[1:] {
				if !slices.Contains(flags, "--procs=1") || !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--focus-file=/") }) {
					t.Errorf("the second attempt has the flags %q", flags)
				}
			}
		})
	}
}

// TestAnOldReportIsNotRead: a suite that does not compile writes none.
func TestAnOldReportIsNotRead(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "escapes.json"), []byte(`[{"SuiteSucceeded": true}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &suite{name: "escapes", reports: folder, out: &strings.Builder{}, ginkgo: func(context.Context, ...string) (time.Duration, error) { return 0, errFailed }}
	if err := s.run(t.Context()); !errors.Is(err, errFailed) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v", err)
	}
}

// TestARaceOfAProcessThatDied: its report is printed, though Ginkgo wrote none.
func TestARaceOfAProcessThatDied(t *testing.T) {
	s := &suite{name: "escapes", reports: t.TempDir(), out: &strings.Builder{}}
	s.ginkgo = func(context.Context, ...string) (time.Duration, error) {
		return 0, errors.Join(errFailed, os.WriteFile(filepath.Join(s.reports, "races.1"), []byte("DATA RACE at x.go"), 0o600))
	}
	if err := s.run(t.Context()); !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "DATA RACE at x.go") {
		t.Errorf("got error %v", err)
	}
}

// TestBudget: a suite that takes more CPU than it may is red.
func TestBudget(t *testing.T) {
	for budget, want := range map[time.Duration]string{0: "", time.Minute: "", time.Second: "RED escapes: 1m0s of CPU are more than its budget of 1s"} {
		s := &suite{name: "escapes", reports: t.TempDir(), budget: budget, out: &strings.Builder{}}
		s.ginkgo = func(context.Context, ...string) (time.Duration, error) {
			return time.Minute, os.WriteFile(filepath.Join(s.reports, "escapes.json"), []byte(`[{"SuiteSucceeded": true}]`), 0o600)
		}
		if err := s.run(t.Context()); (want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("with a budget of %v got %v, want %q", budget, err, want)
		}
	}
}

// TestGinkgo: a container that fails once is repeated whole by the real Ginkgo,
// and the other one is not. What it built is removed.
func TestGinkgo(t *testing.T) {
	t.Setenv("FLAKY_FOLDER", t.TempDir())
	out := &strings.Builder{}
	s := &suite{name: "flaky", reports: t.TempDir(), seed: "7", budget: time.Minute, out: out}
	if err := runFolder(t.Context(), s, "./testdata/flaky", false, []string{"--procs=2"}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`FLAKY flaky flaky_test.go:18 "A flaky container": fails once [failed]`, "COST flaky: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %s", out, want)
		}
	}
	if _, err := os.Stat("testdata/flaky/flaky.test"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program is left: %v", err)
	}
	if err := runFolder(t.Context(), s, "./testdata/none", false, nil); err == nil || !strings.HasPrefix(err.Error(), "RED flaky: does not build") {
		t.Errorf("got %v without a suite", err)
	}
}
