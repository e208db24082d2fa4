package tenants

import (
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	// window is the time in which queries of a source are counted, and for which
	// the kernel drops what a source sends that is over the tolerance.
	window = time.Second
	// tolerance is how many queries of another tenant's pod are read in a window.
	tolerance = 200
	// sources is how many addresses are counted, and how many the kernel drops.
	sources = 64
)

// floods has the kernel drop what other tenants' pods send too much of to a
// tenant's port, before it fills the buffer of the port. One goroutine uses it,
// for each packet and each time that the port has been silent for a while.
type floods struct {
	socket *net.UDPConn
	// began is when the window began, and counts are the queries in it.
	began  time.Time
	counts map[netip.Addr]int
	// blocked are the addresses that the kernel drops in this window.
	blocked []netip.Addr
}

// note counts a query of another tenant's pod.
func (f *floods) note(source netip.Addr) {
	if f.counts == nil {
		f.began, f.counts = time.Now(), map[netip.Addr]int{}
	}
	if _, counted := f.counts[source]; !counted && len(f.counts) >= sources {
		return
	}
	f.counts[source]++
	// What is in the buffer of the port still arrives after the address is blocked.
	if f.counts[source] <= tolerance || slices.Contains(f.blocked, source) {
		return
	}
	f.blocked = append(f.blocked, source)
	f.block()
}

// expire ends a window. Its addresses may be those of the tenant's own pods by
// then, or of pods that have stopped.
func (f *floods) expire() {
	if f.counts == nil || time.Since(f.began) < window {
		return
	}
	f.counts = nil
	if len(f.blocked) > 0 {
		f.blocked = nil
		f.block()
	}
}

func (f *floods) block() {
	if err := setFilter(f.socket, f.blocked); err != nil {
		log.Warningf("Drop the queries of %d sources: %v", len(f.blocked), err)
	}
}
