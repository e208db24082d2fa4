package linux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/inside"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/policies"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/requirements"
)

const (
	// shortLife is the time within which a node that exits counts as broken,
	// and is not restarted.
	shortLife = 5 * time.Second
	// stopPatience is how long a graceful stop may take.
	stopPatience = 5 * time.Second
)

// Node is a node of a super cluster.
type Node struct {
	network *network
	opts    Options
}

// Open checks whether this machine can run a node, and sets up its network. The
// node does not run yet. Close undoes it.
func Open(opts Options) (*Node, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	if err := policies.Check(); err != nil {
		return nil, err
	}
	network, err := newNetwork()
	if err != nil {
		return nil, err
	}
	return &Node{network: network, opts: opts}, nil
}

// HostAddress returns the address at which the node and its pods reach this
// machine.
func (n *Node) HostAddress() net.IP { return n.network.hostAddress() }

// Address returns the address of the node.
func (n *Node) Address() net.IP { return n.network.nodeAddress() }

// PodNetwork returns the CIDR of the node's pods.
func (n *Node) PodNetwork() string { return n.network.podNetwork().String() }

// Close deletes the network.
func (n *Node) Close() error { return n.network.close() }

// Run runs the node in the cluster until ctx ends. A node that exits is
// restarted, as a machine would be.
func (n *Node) Run(ctx context.Context, cluster Cluster) error {
	settings, err := n.settings(cluster)
	if err != nil {
		return err
	}
	return n.keep(ctx, settings)
}

// keep boots the node whenever it has ended, until ctx ends.
func (n *Node) keep(ctx context.Context, settings *inside.Settings) error {
	for ctx.Err() == nil {
		started := time.Now()
		err := n.boot(ctx, settings)
		if ctx.Err() == nil && time.Since(started) < shortLife {
			return fmt.Errorf("the node exited right after its start: %w", err)
		}
		if ctx.Err() == nil {
			n.opts.Log.Info("The node exited, restarting it", "reason", fmt.Sprint(err))
		}
	}
	return nil
}

// boot runs the node once, from the creation of its cgroup until it exits.
func (n *Node) boot(ctx context.Context, settings *inside.Settings) (err error) {
	pods := cgroup(settings.Cgroup)
	if err := pods.make(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pods.remove(context.WithoutCancel(ctx))) }()
	command, input, err := n.command(ctx)
	if err != nil {
		return err
	}
	if err := n.network.start(command); err != nil {
		return fmt.Errorf("start the node in namespaces of its own: %w", err)
	}
	if err := json.NewEncoder(input).Encode(settings); err != nil {
		return errors.Join(fmt.Errorf("send the node its settings: %w", err), command.Cancel(), command.Wait())
	}
	return command.Wait()
}

// command returns the command that runs this program as process 1 of the node.
// It exits when its input ends, which is closed when ctx or this process ends;
// the kernel then kills all other processes in its namespaces.
func (n *Node) command(ctx context.Context) (*exec.Cmd, io.Writer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	command := exec.CommandContext(ctx, self, n.opts.Command...) //nolint:gosec // this program
	input, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	command.Cancel, command.WaitDelay = input.Close, stopPatience
	command.Stdout, command.Stderr = n.opts.Output, n.opts.Output
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true, // Ctrl-C is for the parent, which then stops the node
	}
	return command, input, nil
}

// settings returns the settings of the node, with new certificates.
func (n *Node) settings(cluster Cluster) (*inside.Settings, error) {
	state := n.opts.state()
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("create the node's directory: %w", err)
	}
	nameservers, err := outerNameservers()
	if err != nil {
		return nil, err
	}
	s := &inside.Settings{
		Name: Name, Programs: n.opts.Programs, Images: n.opts.Images, State: state, Cgroup: n.network.name(),
		PluginDirs: requirements.PluginDirs(), Nameservers: nameservers,
		Address: n.Address(), PodNetwork: n.network.podNetwork().String(),
		ClusterDNS: cluster.DNS, ClusterDomain: cluster.Domain,
		Server: cluster.ControlPlane.PodEndpoint(), ServerName: cluster.ControlPlane.ServerName(), CA: cluster.ControlPlane.CA(),
	}
	var errs [4]error
	s.Kubelet, errs[0] = cluster.ControlPlane.NewClientCertificate("system:node:"+Name, []string{"system:nodes"})
	s.KubeProxy, errs[1] = cluster.ControlPlane.NewClientCertificate("system:kube-proxy", nil)
	s.Policies, errs[2] = cluster.ControlPlane.NewClientCertificate(policiesUser, nil)
	s.Serving, errs[3] = cluster.ControlPlane.NewServingCertificate(Name, []net.IP{n.Address()})
	return s, errors.Join(errs[:]...)
}
