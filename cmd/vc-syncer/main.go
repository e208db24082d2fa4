// Command vc-syncer carries the objects of all tenants between their control planes and the super cluster.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/syncer/app"
)

func main() {
	if err := app.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "vc-syncer:", err)
		os.Exit(1)
	}
}
