// Command vn-agent answers logs, exec, attach and port-forward of tenants' pods
// in the place of their virtual nodes.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/vnagent/app"
)

func main() {
	os.Exit(component.Main(app.NewCommand()))
}
