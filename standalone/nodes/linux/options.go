package linux

import (
	"io"
	"net"
	"path/filepath"

	"github.com/go-logr/logr"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// Name is the name of the node in the super cluster.
const Name = "worker"

// Options configures a node on this machine.
type Options struct {
	// Dir is the directory of the data that outlives the node: images, and the
	// volumes of pods.
	Dir string
	// Programs is the directory of the node's programs, which make node fills.
	Programs string
	// Images is a directory with archives of images in addition to those of
	// Programs; empty for none.
	Images string
	// Command has the arguments with which this program is process 1 of a node,
	// and calls inside.Main.
	Command []string
	// Output is the output of that process, and Log the logger of this one.
	Output io.Writer
	Log    logr.Logger
}

// state returns the directory that the node mounts as /var.
func (o Options) state() string { return filepath.Join(o.Dir, "var") }

// Library returns the path on this machine of a directory in the node's
// /var/lib.
func (o Options) Library(name string) string { return filepath.Join(o.state(), "lib", name) }

// Cluster is the cluster of the node.
type Cluster struct {
	// ControlPlane is the control plane of the super cluster.
	ControlPlane *hosted.ControlPlane
	// DNS is the address of the cluster's DNS service, and Domain the cluster
	// domain.
	DNS    net.IP
	Domain string
}
