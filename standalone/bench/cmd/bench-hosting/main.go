// Command bench-hosting measures what hosted control planes cost.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/standalone/bench"
	"github.com/virtualcluster/virtualcluster/standalone/internal/childprocess"
)

func main() {
	childprocess.RunIfChild(func() { os.Exit(bench.Child(os.Args[1:], os.Exit)) })
	os.Exit(bench.Main(os.Args[1:], os.Stdout, os.Stderr))
}
