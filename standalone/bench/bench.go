// Package bench measures what hosted control planes cost: their memory,
// goroutines and idle CPU, the time until they are ready, the latency of
// requests compared with upstream's kube-apiserver as a process of its own, the
// sleep of control planes, their part of the syncer, and many of them in one
// process. It prints a table in Markdown.
//
// Each measured program is a child process, so that measurements do not affect
// each other.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Main measures what the arguments select, prints the table to out and progress
// to diagnostics, and returns the exit code.
func Main(args []string, out, diagnostics io.Writer) int {
	klog.SetLogger(logr.Discard()) // clients return their errors
	opts, err := parseOptions(args)
	if err != nil {
		_, _ = fmt.Fprintln(diagnostics, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := &table{}
	err = measureAll(ctx, opts, t, diagnostics)
	_, _ = io.WriteString(out, t.markdown()) // also after an error: what was measured before it took long
	if err != nil {
		_, _ = fmt.Fprintln(diagnostics, err)
		return 1
	}
	return 0
}

// measureAll measures the selected figures.
func measureAll(ctx context.Context, opts *options, t *table, diagnostics io.Writer) error {
	for _, figure := range figures() {
		if !opts.measures(figure.name) {
			continue
		}
		for n := range opts.runs {
			_, _ = fmt.Fprintf(diagnostics, "%s, run %d of %d\n", figure.name, n+1, opts.runs)
			if err := inDirectory(func(dir string) error { return figure.measure(ctx, opts, dir, t) }); err != nil {
				return fmt.Errorf("measure %s: %w", figure.name, err)
			}
		}
	}
	return nil
}

// figure is a group of rows that are measured together.
type figure struct {
	name    string
	measure func(ctx context.Context, opts *options, dir string, t *table) error
}

func figures() []figure {
	return []figure{
		{"memory", measureMemory}, {"ready", measureReady}, {"requests", measureRequests}, {"sleep", measureSleep}, {"syncer", measureSyncer},
		{"scale", measureScale},
	}
}

// inDirectory calls do with a temporary directory.
func inDirectory(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "vc-bench-")
	if err != nil {
		return fmt.Errorf("create a directory for the run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return do(dir)
}
