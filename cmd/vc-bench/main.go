// Command vc-bench measures throughput, latency, fairness and costs of VirtualCluster.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/test/bench"
)

func main() {
	os.Exit(component.Main(bench.NewCommand()))
}
