package linux

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	// maxNetworks is how many nodes a machine can have, over all processes: one
	// for each value of a byte in addresses.
	maxNetworks = 256
	prefixBits  = 24
	addressBits = 32
)

// network is the node's network namespace and the link between it and this
// machine. It exists as long as this process, or until close, and so survives
// restarts of the node.
type network struct {
	index     byte
	namespace netns.NsHandle
	link      netlink.Link
}

// newNetwork creates a network that is not in use on this machine. The name of
// the link serves as the lock.
func newNetwork() (*network, error) {
	namespace, err := newNamespace()
	if err != nil {
		return nil, fmt.Errorf("create a network namespace: %w", err)
	}
	for index := range maxNetworks {
		n := &network{index: byte(index), namespace: namespace}
		err := n.connect()
		switch {
		case err == nil:
			return n, nil
		case !errors.Is(err, syscall.EEXIST):
			return nil, errors.Join(fmt.Errorf("connect the node to this machine: %w", err), n.close())
		}
	}
	return nil, errors.Join(fmt.Errorf("this machine has %d nodes already: stop one", maxNetworks), namespace.Close())
}

// newNamespace creates a network namespace on a thread that it sacrifices.
func newNamespace() (namespace netns.NsHandle, err error) {
	done := make(chan struct{})
	go func() { // the thread exits with the goroutine, because it stays locked
		defer close(done)
		runtime.LockOSThread()
		namespace, err = netns.New()
	}()
	<-done
	return namespace, err
}

func (n *network) name() string { return fmt.Sprintf("vc-node-%d", n.index) }

// hostAddress returns the address of this machine on the link, and nodeAddress
// that of the node. The range is reserved for benchmarks (RFC 2544).
func (n *network) hostAddress() net.IP { return net.IPv4(198, 19, n.index, 1).To4() }
func (n *network) nodeAddress() net.IP { return net.IPv4(198, 19, n.index, 2).To4() }

// podNetwork returns the CIDR of the node's pods.
func (n *network) podNetwork() *net.IPNet {
	return &net.IPNet{IP: net.IPv4(10, 244, n.index, 0).To4(), Mask: net.CIDRMask(prefixBits, addressBits)}
}

func (n *network) connect() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = n.name()
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(n.namespace)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add link %s: %w", n.name(), err)
	}
	n.link = veth
	here, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer here.Close()
	there, err := netlink.NewHandleAt(n.namespace)
	if err != nil {
		return err
	}
	defer there.Close()
	// No EEXIST from here on: to the caller it means that another node has the
	// link.
	if err := errors.Join(
		raise(there, "lo", nil), raise(there, "eth0", n.nodeAddress()), raise(here, n.name(), n.hostAddress()),
		there.RouteAdd(&netlink.Route{Gw: n.hostAddress()}),
		here.RouteReplace(&netlink.Route{Dst: n.podNetwork(), Gw: n.nodeAddress()}),
	); err != nil {
		return fmt.Errorf("set up link %s: %s", n.name(), err.Error())
	}
	return nil
}

// raise sets the address of a link, if there is one, and brings the link up.
func raise(at *netlink.Handle, name string, address net.IP) error {
	link, err := at.LinkByName(name)
	if err != nil {
		return err
	}
	if address != nil {
		subnet := &net.IPNet{IP: address, Mask: net.CIDRMask(prefixBits, addressBits)}
		if err := at.AddrAdd(link, &netlink.Addr{IPNet: subnet}); err != nil {
			return err
		}
	}
	return at.LinkSetUp(link)
}

// start starts a process in the namespace.
func (n *network) start(command *exec.Cmd) error {
	started := make(chan error)
	go func() { // the thread exits with the goroutine, because it stays locked
		runtime.LockOSThread()
		err := netns.Set(n.namespace)
		if err == nil {
			err = command.Start()
		}
		started <- err
	}()
	return <-started
}

func (n *network) close() error {
	var err error
	if n.link != nil {
		err = netlink.LinkDel(n.link)
	}
	return errors.Join(err, n.namespace.Close())
}
