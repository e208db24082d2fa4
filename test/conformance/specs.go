package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// conformanceLabel is in the name of every spec of the suite.
const conformanceLabel = `\[Conformance\]`

// spec is one of the suite.
type spec struct {
	name string
	// serial says that no other may run at the same time.
	serial bool
}

// listSpecs asks the suite for its specs, and sorts them: its own order is
// another one every time.
func listSpecs(ctx context.Context, binary string) ([]spec, error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's directory for temporary files
	file := filepath.Join(dir, "specs.json")
	command := exec.CommandContext(ctx, binary, "--ginkgo.dry-run", "--ginkgo.silence-skips", "--ginkgo.focus", conformanceLabel,
		"--ginkgo.json-report", file, "--provider", "skeleton", "--kubeconfig", os.DevNull)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ask %s for its specs (make conformance-suite builds it): %w: %s", binary, err, lastLines(output))
	}
	report, err := readReport(file)
	if err != nil {
		return nil, err
	}
	specs := make([]spec, 0, len(report.SpecReports))
	for _, r := range report.SpecReports {
		specs = append(specs, spec{name: r.FullText(), serial: r.IsSerial})
	}
	slices.SortFunc(specs, func(a, b spec) int { return strings.Compare(a.name, b.name) })
	return specs, nil
}

// lastLines is the end of what a program said.
func lastLines(output []byte) []byte {
	const enough = 2000
	return output[max(0, len(output)-enough):]
}

// readReport reads a report of ginkgo's, and of that the specs that ran to their end.
func readReport(file string) (types.Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return types.Report{}, err
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return types.Report{}, fmt.Errorf("read %s: %w", file, err)
	}
	if len(reports) != 1 {
		return types.Report{}, errors.New("ginkgo reported on more than one suite")
	}
	report := reports[0]
	report.SpecReports = slices.DeleteFunc(report.SpecReports, func(r types.SpecReport) bool {
		unfinished := types.SpecStateSkipped | types.SpecStatePending | types.SpecStateInterrupted | types.SpecStateAborted
		return r.LeafNodeType != types.NodeTypeIt || r.State.Is(unfinished)
	})
	return report, nil
}

// batches divides specs into parts of a size. Those that run alone come last,
// so that the others need not wait for them, and in smaller parts: they take as
// much longer.
func batches(specs []spec, size, atOnce int) [][]spec {
	var together, alone []spec
	for _, s := range specs {
		if s.serial {
			alone = append(alone, s)
		} else {
			together = append(together, s)
		}
	}
	return slices.AppendSeq(slices.Collect(slices.Chunk(together, size)), slices.Chunk(alone, max(1, size/atOnce)))
}
