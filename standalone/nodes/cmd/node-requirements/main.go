// Command node-requirements reports what this machine lacks for a real node. It
// fails if the node's programs cannot be built, and with --run also if the node
// cannot run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/requirements"
)

func main() {
	run := flag.Bool("run", false, "also fail if this machine cannot run a real node")
	flag.Parse()
	building, running := requirements.ForBuilding(), requirements.ForRunning()
	if *run {
		building, running = errors.Join(building, running), nil
	}
	if running != nil {
		fmt.Fprintf(os.Stderr, "Required before the real node can run here:\n%s\n", indent(running))
	}
	if building != nil {
		fmt.Fprintf(os.Stderr, "This machine lacks what a real node needs:\n%s\n", indent(building))
		os.Exit(1)
	}
}

func indent(err error) string { return "  " + strings.ReplaceAll(err.Error(), "\n", "\n  ") }
