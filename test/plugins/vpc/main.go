// Command vpc is a syncer of a platform's own: the project's, with a provider of
// networks of type vpc.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/app"
)

// folder is where the example keeps its VPCs, in the place of a cloud.
const folder = "VPC_FOLDER"

func main() {
	if err := newCommand(os.Getenv(folder)).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newCommand returns vc-syncer with the provider of the VPCs in a folder.
func newCommand(folder string) *cobra.Command {
	return app.NewExtendedCommand(app.Extensions{NetworkProviders: []network.Registration{registration(folder)}})
}
