package linux

import (
	"io"
	"net"
	"path/filepath"

	"github.com/go-logr/logr"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// Name is the node's in the super cluster.
const Name = "worker"

// Options say how a node is set up on this machine.
type Options struct {
	// Dir is where the node keeps what outlives it: images, and the volumes of pods.
	Dir string
	// Programs is the directory of what a node runs, which make node fills.
	Programs string
	// Images is a directory with archives of images that the node has besides those of Programs; empty for none.
	Images string
	// Command are the arguments with which this program is process 1 of a node, and calls inside.Main.
	Command []string
	// Output is what that process writes to, and Log where this one tells how the node is.
	Output io.Writer
	Log    logr.Logger
}

// state is what the node sees as /var.
func (o Options) state() string { return filepath.Join(o.Dir, "var") }

// Library is where this machine sees what the node has in a directory of its /var/lib.
func (o Options) Library(name string) string { return filepath.Join(o.state(), "lib", name) }

// Cluster is what the node is a part of.
type Cluster struct {
	// ControlPlane is the super cluster's.
	ControlPlane *hosted.ControlPlane
	// DNS is the address of the cluster's DNS service, and Domain the domain that it answers for.
	DNS    net.IP
	Domain string
}
