// Command vc-manager brings VirtualClusters to life.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/controllers/app"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/external"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/hosted"
	"github.com/virtualcluster/virtualcluster/internal/component"
)

func main() {
	os.Exit(component.Main(app.NewCommand(external.Registration(), hosted.Registration())))
}
