// Command node-requirements reports what this machine lacks for a real node. It
// fails if the node's programs cannot be built, and with --run also if the node
// cannot run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/requirements"
)

func main() {
	run := flag.Bool("run", false, "also fail if this machine cannot run a real node")
	flag.Parse()
	os.Exit(report(os.Stderr, requirements.ForBuilding(), requirements.ForRunning(), *run))
}

// report writes what is missing, and returns the exit code.
func report(out io.Writer, building, running error, run bool) int {
	if run {
		building, running = errors.Join(building, running), nil
	}
	if running != nil {
		_, _ = fmt.Fprintf(out, "Required before the real node can run here:\n%s\n", indent(running))
	}
	if building != nil {
		_, _ = fmt.Fprintf(out, "This machine lacks what a real node needs:\n%s\n", indent(building))
		return 1
	}
	return 0
}

func indent(err error) string { return "  " + strings.ReplaceAll(err.Error(), "\n", "\n  ") }
