package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// podLinger is how long the port of a control plane that another host has taken
// over stays open: so long may pods not know its address at that host.
const podLinger = 10 * time.Second

// podAddressFile has the address of the last port for pods, which is not secret.
const podAddressFile = "pod-address"

// podListeners are the ports of control planes for clients in pods, which send
// no server name. The port of a control plane is open while it runs or sleeps,
// and has the same number in between: while it sleeps, the endpoints of its
// Service in the super cluster are not written.
type podListeners struct {
	ctx    context.Context // ends with the host
	ip     net.IP
	ports  PortRange
	router *router
	// records has the address of each port, to open it again after a restart;
	// nil for keys that hosts with other addresses share.
	records Keyring
	log     logr.Logger

	accepting sync.WaitGroup

	mu   sync.Mutex
	open map[string]net.Listener
	// leaving close the ports of control planes that other hosts have taken over.
	leaving map[string]*time.Timer
}

func newPodListeners(ctx context.Context, opts Options, r *router) *podListeners {
	p := &podListeners{
		ctx: ctx, ip: opts.PodAddress, ports: opts.PodPorts, router: r, log: opts.Log,
		open: map[string]net.Listener{}, leaving: map[string]*time.Timer{},
	}
	if onDisk, ok := opts.Keys.(directories); ok {
		p.records = onDisk
	}
	return p
}

// listen opens the port of a control plane, unless it is open, and returns its
// address.
func (p *podListeners) listen(name string) (net.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listener := p.open[name]; listener != nil {
		delete(p.leaving, name)
		return listener.Addr(), nil
	}
	if listener := p.lockedReopen(name); listener != nil {
		return listener.Addr(), nil
	}
	listener, err := p.ports.listen(p.ip)
	if errors.Is(err, ErrNoPodPort) && p.lockedCloseOther() {
		listener, err = p.ports.listen(p.ip)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for clients without a server name: %w", err)
	}
	p.lockedServe(name, listener)
	if err := p.record(name, listener.Addr()); err != nil {
		p.log.Error(err, "The port of a control plane for pods will be another one after a restart", "controlPlane", name)
	}
	return listener.Addr(), nil
}

// lockedCloseOther closes the port of a control plane that has left or sleeps,
// because one that is to run has none. It reports false if there is none to close.
func (p *podListeners) lockedCloseOther() bool {
	for name := range p.leaving {
		p.lockedClose(name)
		return true
	}
	for name := range p.open {
		if server := serverName(name); p.router.find(server) == nil && p.router.sleepers.sleeps(server) {
			p.lockedClose(name)
			return true
		}
	}
	return false
}

// reopen opens the last port of a control plane that sleeps, if it is not open.
// If that is not possible, pods cannot reach the control plane until it wakes.
func (p *podListeners) reopen(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leaving, name)
	if p.ip != nil && p.open[name] == nil {
		p.lockedReopen(name)
	}
}

// lockedReopen returns nil if the last port is not known, or is in use.
func (p *podListeners) lockedReopen(name string) net.Listener {
	last := p.last(name)
	if last == nil {
		return nil
	}
	listener, err := net.ListenTCP("tcp", last)
	if err != nil {
		return nil
	}
	p.lockedServe(name, listener)
	return listener
}

// last returns the recorded address of a control plane's port; nil if there is
// none, or if it is of another IP address than that of the host.
func (p *podListeners) last(name string) *net.TCPAddr {
	if p.records == nil {
		return nil
	}
	keys, err := p.records.Open(p.ctx, name)
	if err != nil {
		return nil
	}
	data, err := keys.Read(podAddressFile)
	if err != nil {
		return nil
	}
	last, err := net.ResolveTCPAddr("tcp", strings.TrimSpace(string(data)))
	if err != nil || !last.IP.Equal(p.ip) || !p.ports.has(last.Port) {
		return nil
	}
	return last
}

func (p *podListeners) record(name string, address net.Addr) error {
	if p.records == nil {
		return nil
	}
	keys, err := p.records.Open(p.ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(ensureFile(keys, podAddressFile, []byte(address.String()+"\n")), keys.Commit(p.ctx))
}

// lockedServe passes connections of a port to its control plane.
func (p *podListeners) lockedServe(name string, listener net.Listener) {
	p.open[name] = listener
	server := serverName(name)
	p.accepting.Go(func() { acceptFrom(p.ctx, listener, func(conn net.Conn) { p.router.deliver(p.ctx, server, conn) }) })
}

// close closes the port of a control plane, if it is open.
func (p *podListeners) close(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lockedClose(name)
}

func (p *podListeners) lockedClose(name string) {
	if listener := p.open[name]; listener != nil {
		_ = listener.Close()
		delete(p.open, name)
		delete(p.leaving, name)
	}
}

// leave closes the port of a control plane that another host has taken over when
// pods know the new address. Until then, connections are passed on.
func (p *podListeners) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[name] == nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(podLinger, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.leaving[name] == timer { // it has not come back
			p.lockedClose(name)
		}
	})
	p.leaving[name] = timer
}

// left returns how many ports of control planes that have left are open.
func (p *podListeners) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.leaving)
}

// stop closes all ports, after the end of the context.
func (p *podListeners) stop() {
	p.mu.Lock()
	for _, listener := range p.open {
		_ = listener.Close()
	}
	clear(p.open)
	for _, timer := range p.leaving {
		timer.Stop()
	}
	clear(p.leaving)
	p.mu.Unlock()
	p.accepting.Wait()
}
