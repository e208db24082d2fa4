package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxRuns is how many runs are looked at, from the last one.
const maxRuns = 100

// verdict is what became of a run.
type verdict struct {
	Time time.Time `json:"time"`
	// Commit is what was tested. It is empty if that was not committed.
	Commit string `json:"commit,omitempty"`
	// Go is the version that built it.
	Go      string  `json:"go"`
	Seed    string  `json:"seed,omitempty"`
	Full    bool    `json:"full,omitempty"`
	Seconds float64 `json:"seconds"`
	Load    string  `json:"load,omitempty"`
	Green   bool    `json:"green"`
	// Open are the areas which the run has not shown to be green.
	Open []string `json:"open,omitempty"`
	// Red and Flaky are lines of the summary.
	Red   []string `json:"red,omitempty"`
	Flaky []string `json:"flaky,omitempty"`
}

// String is the last line of a run.
func (v verdict) String() string {
	word := "red"
	if v.Green {
		word = "green"
	}
	tested := v.Commit
	if tested == "" {
		tested = "what is not committed"
	}
	text := fmt.Sprintf("%s after %.0f s: %s, seed %s, %d red, %d flaky", word, v.Seconds, tested, v.Seed, len(v.Red), len(v.Flaky))
	if v.Full {
		text += ", full"
	}
	return text
}

// history is a file with what became of the runs on this machine, the last one at
// its end: a line of JSON each. Nothing that a clone knows tells which commit has
// passed.
type history string

// newHistory returns that of this user.
func newHistory() (history, error) {
	folder, err := os.UserCacheDir()
	return history(filepath.Join(folder, "virtualcluster-gate", "runs.jsonl")), err
}

// runs returns what became of the last runs, the last one first. A line that was
// not written to its end is no run.
func (h history) runs() ([]verdict, error) {
	data, err := os.ReadFile(string(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var runs []verdict
	for line := range strings.Lines(string(data)) {
		var v verdict
		if json.Unmarshal([]byte(line), &v) == nil {
			runs = append(runs, v)
		}
	}
	slices.Reverse(runs)
	return runs[:min(maxRuns, len(runs))], err
}

// add adds a run.
func (h history) add(v verdict) (err error) {
	if err := os.MkdirAll(filepath.Dir(string(h)), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(string(h), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return json.NewEncoder(file).Encode(v)
}
