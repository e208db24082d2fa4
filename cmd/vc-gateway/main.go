// Command vc-gateway serves all tenants at one address.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/component"
)

func main() {
	os.Exit(component.Main(app.NewCommand()))
}
