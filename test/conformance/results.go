package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
)

// results are those of one side: a file for each batch, of which later ones count more.
type results struct {
	dir    string
	files  int
	bySpec map[string]types.SpecReport
	suite  types.Report
}

// openResults reads the results of earlier runs.
func openResults(dir string) (*results, error) {
	r := &results{dir: dir, bySpec: map[string]types.SpecReport{}}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	for {
		data, err := os.ReadFile(r.file())
		if errors.Is(err, fs.ErrNotExist) {
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		var report types.Report
		if err := json.Unmarshal(data, &report); err != nil {
			return nil, fmt.Errorf("read %s: %w; delete it to run its specs again", r.file(), err)
		}
		r.add(report)
	}
}

// file is where the next batch is kept.
func (r *results) file() string { return filepath.Join(r.dir, fmt.Sprintf("%03d.json", r.files)) }

func (r *results) add(report types.Report) {
	for _, spec := range report.SpecReports {
		r.bySpec[spec.FullText()] = spec
	}
	r.suite = report
	r.files++
}

// keep writes the results of a batch.
func (r *results) keep(report types.Report) error {
	data, err := json.Marshal(report)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.file(), data, 0o600); err != nil {
		return err
	}
	r.add(report)
	return nil
}

// missing are the specs that did not run yet, or, if those are wanted too, that failed.
func (r *results) missing(specs []spec, failed bool) []spec {
	return slices.DeleteFunc(slices.Clone(specs), func(s spec) bool {
		result, ran := r.bySpec[s.name]
		return ran && (!failed || result.State.Is(types.SpecStatePassed))
	})
}

// passed reports whether a spec passed, and whether it ran.
func (r *results) passed(name string) (passed, ran bool) {
	result, ran := r.bySpec[name]
	return ran && result.State.Is(types.SpecStatePassed), ran
}

// writeJUnit writes the last result of every spec.
func (r *results) writeJUnit() error {
	report := r.suite
	report.SpecReports = nil
	for _, spec := range r.bySpec {
		report.SpecReports = append(report.SpecReports, spec)
		report.RunTime += spec.RunTime
	}
	return reporters.GenerateJUnitReport(report, filepath.Join(r.dir, "junit.xml"))
}
