// Command vc-capi is the Cluster API provider of VirtualCluster.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/capi/app"
	"github.com/virtualcluster/virtualcluster/internal/component"
)

func main() {
	os.Exit(component.Main(app.NewCommand()))
}
