// Command vc-bench measures throughput, latency, fairness and costs of VirtualCluster.
package main

import (
	"os"

	"github.com/virtualcluster/virtualcluster/internal/process"
	"github.com/virtualcluster/virtualcluster/test/bench"
)

func main() {
	os.Exit(process.Main(bench.NewCommand()))
}
