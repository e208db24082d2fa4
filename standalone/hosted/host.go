package hosted

import (
	"context"

	"github.com/go-logr/logr"
)

// Options say how a Host is set up. Only Dir has no default.
type Options struct {
	// Dir holds everything that outlives the process: etcd's data under
	// "etcd" and each control plane's PKI under "controlplanes/<name>/pki".
	Dir string
	// Listen is the IP address of the one TLS port; 127.0.0.1 by default.
	Listen string
	// Port is the number of that port. Zero picks a free one, which changes
	// every kubeconfig at the next start.
	Port int
	// Default names the control plane that serves connections which ask for
	// no server name, or for one that belongs to no control plane.
	Default string
	// UnsafeNoFsync lets etcd skip fsync. A crash of the machine may then
	// cost data: for tests and throw-away demos only.
	UnsafeNoFsync bool
	// Log receives what the host itself has to say. Kubernetes code logs
	// through klog, which belongs to the process.
	Log logr.Logger
}

// Host runs control planes over one etcd and behind one port.
type Host struct{}

// Start brings up etcd and the port under the given directory. Control planes
// are added with Run. Everything ends when ctx does, or with Stop.
//
// Start sets utilruntime.ReallyCrash to false for the process, so that a panic
// in a goroutine of one control plane does not end the others.
func Start(ctx context.Context, opts Options) (*Host, error) { return nil, nil }

// Address is the host:port that all control planes are reached at.
func (h *Host) Address() string { return "" }

// Run starts a control plane in the background and returns at once. Its PKI
// and data are found again if it ran before. A name that is running already is
// an error; one whose control plane has ended can be run again.
func (h *Host) Run(spec Spec) (*ControlPlane, error) { return nil, nil }

// Get finds a control plane that was started with Run and has not ended.
func (h *Host) Get(name string) (*ControlPlane, bool) { return nil, false }

// Delete stops the control plane if it runs, and removes all its data from
// etcd and its PKI from disk. Deleting what does not exist is no error.
func (h *Host) Delete(ctx context.Context, name string) error { return nil }

// Stop ends all control planes, the port and etcd. The data stays.
func (h *Host) Stop(ctx context.Context) error { return nil }

// Done is closed when the host has stopped for whatever reason.
func (h *Host) Done() <-chan struct{} { return nil }

// Err says why the host stopped by itself; nil while it runs and after Stop.
func (h *Host) Err() error { return nil }
