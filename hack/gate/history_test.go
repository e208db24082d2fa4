package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHistory: the last run is the first, and a line that is broken is none.
func TestHistory(t *testing.T) {
	past := history(filepath.Join(t.TempDir(), "cache", "runs.jsonl"))
	if runs, err := past.runs(); len(runs) > 0 || err != nil {
		t.Fatalf("got %v, %v before the first run", runs, err)
	}
	for _, commit := range []string{"a", "b"} {
		if err := past.add(verdict{Commit: commit, Open: []string{"gateway"}}); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.OpenFile(string(past), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"commit": "c", "op` + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := past.runs()
	if err != nil || len(runs) != 2 || runs[0].Commit != "b" || runs[1].Open[0] != "gateway" {
		t.Errorf("got %v, %v", runs, err)
	}
	for range maxRuns {
		if err := past.add(verdict{Commit: "d"}); err != nil {
			t.Fatal(err)
		}
	}
	if runs, err := past.runs(); err != nil || len(runs) != maxRuns || runs[maxRuns-1].Commit != "d" {
		t.Errorf("got %d runs, %v", len(runs), err)
	}
}

func TestVerdict(t *testing.T) {
	for want, v := range map[string]verdict{
		"green after 61 s: abc, seed 7, 0 red, 1 flaky":                      {Green: true, Seconds: 61, Commit: "abc", Seed: "7", Flaky: []string{"FLAKY"}},
		"red after 9 s: what is not committed, seed 7, 2 red, 0 flaky, full": {Seconds: 9, Seed: "7", Full: true, Red: []string{"RED", "RED"}},
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
