// Command vc-host runs the control planes of many tenants in one process.
package main

import (
	"os"

	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/internal/component"

	"github.com/virtualcluster/virtualcluster/standalone/host"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

func main() {
	klog.OsExit = hosted.ContainExit(os.Exit)
	os.Exit(component.Main(host.NewCommand()))
}
