// Command provisioner is a vc-manager of a platform's own: the project's, with
// one more provisioner.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/controllers/app"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/external"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/hosted"
)

func main() {
	if err := newCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newCommand returns vc-manager with the project's provisioners and Adopted.
func newCommand() *cobra.Command {
	return app.NewCommand(external.Registration(), hosted.Registration(), registration())
}
