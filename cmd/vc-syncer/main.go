// Command vc-syncer syncs the objects of all tenants between their control
// planes and the super cluster.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/syncer/app"
)

func main() {
	os.Exit(component.Main(app.NewCommand()))
}
