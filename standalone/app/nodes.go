package app

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/simulated"
)

// realNodes is the value of the flag for a node that runs containers.
const realNodes = "real"

// Nodes are what the super cluster has for nodes: simulated ones, or a real
// one.
type Nodes struct {
	Simulated int
	Real      bool
}

var _ pflag.Value = &Nodes{}

// Set takes the value of a flag.
func (n *Nodes) Set(value string) error {
	if value == realNodes {
		*n = Nodes{Real: true}
		return nil
	}
	count, err := strconv.Atoi(value)
	if err != nil || count < 0 || count > simulated.Max {
		return fmt.Errorf("it must be 0 to %d, or %s", simulated.Max, realNodes)
	}
	*n = Nodes{Simulated: count}
	return nil
}

// String is the value of a flag.
func (n *Nodes) String() string {
	if n.Real {
		return realNodes
	}
	return strconv.Itoa(n.Simulated)
}

// Type is what help calls the value.
func (n *Nodes) Type() string { return "number or real" }

// image is one that the nodes run.
func (n *Nodes) image() string {
	if n.Real {
		return "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	}
	return "web.example/web:1"
}
