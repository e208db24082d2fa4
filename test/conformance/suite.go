package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// patience is how long specs may take to end after an interrupt. Some do not
// look up before their own time is over.
const patience = 16 * time.Minute

// suite is what runs specs on one side.
type suite struct {
	side       string
	kubeconfig string
	opts       *options
}

// run runs specs, and returns the results of those that ran to their end, also
// when some failed or ctx ended.
func (s suite) run(ctx context.Context, specs []spec, out console) (report types.Report, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return types.Report{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's directory for temporary files
	log, err := os.OpenFile(filepath.Join(s.opts.results, s.side+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return types.Report{}, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	command := exec.CommandContext(ctx, s.opts.file("ginkgo"), s.arguments(dir, specs)...)
	command.Stdout = io.MultiWriter(log, &progress{out: out, of: len(specs)})
	command.Stderr = log
	command.Cancel, command.WaitDelay = func() error { return command.Process.Signal(os.Interrupt) }, patience
	failed := command.Run()
	report, err = readReport(filepath.Join(dir, reportFile))
	if err != nil {
		return report, fmt.Errorf("the suite ended without a report; %s tells more: %w", log.Name(), errors.Join(failed, err))
	}
	if len(report.SpecReports) == 0 {
		return report, errors.Join(fmt.Errorf("no spec ran to its end; %s tells more", log.Name()), ctx.Err(), failed)
	}
	return report, nil
}

const reportFile = "report.json"

func (s suite) arguments(dir string, specs []spec) []string {
	args := []string{
		"--procs", strconv.Itoa(s.opts.procs), "--timeout", "24h", "--keep-going", "--no-color", "--succinct", "--silence-skips",
		"--output-dir", dir, "--json-report", reportFile,
	}
	for _, spec := range specs {
		args = append(args, "--focus", regexp.QuoteMeta(spec.name)+"$")
	}
	return append(args, s.opts.file("e2e.test"), "--", "--provider", "skeleton", "--kubeconfig", s.kubeconfig,
		"--kubectl-path", filepath.Join(s.opts.binaries, "node", "kubectl"))
}
