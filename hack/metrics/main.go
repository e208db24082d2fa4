// Metrics writes the documentation of the metrics of all programs.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	manager "github.com/virtualcluster/virtualcluster/controllers/app"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	syncer "github.com/virtualcluster/virtualcluster/syncer/app"
	vnagent "github.com/virtualcluster/virtualcluster/vnagent/app"
)

// program is a program with metrics of its own.
type program struct {
	name     string
	register func(prometheus.Registerer) error
}

// programs returns all programs. vc-standalone has the metrics of the parts
// that it runs, and its own.
func programs() []program {
	return []program{
		{"vc-manager", manager.RegisterMetrics}, {"vc-syncer", syncer.RegisterMetrics}, {"vn-agent", vnagent.RegisterMetrics},
		{"vc-gateway", gateway.RegisterMetrics}, {"vc-standalone", egress.RegisterMetrics},
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// run writes the document to the file in the argument.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the file to write, got %q", args)
	}
	out := bytes.NewBufferString(header)
	for _, p := range programs() {
		families, err := describe(p.register)
		if err != nil {
			return fmt.Errorf("describe the metrics of %s: %w", p.name, err)
		}
		write(out, p.name, families)
	}
	out.WriteString(hosted)
	return os.WriteFile(args[0], out.Bytes(), 0o644) //nolint:gosec // a public document
}
