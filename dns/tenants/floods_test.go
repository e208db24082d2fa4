package tenants

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestForeignFlood: the kernel drops most of what a pod sends to another
// tenant's port, whose own pods are answered meanwhile. A pod that gets the
// address afterwards is answered.
func TestForeignFlood(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var sent atomic.Int64
	go flood(ctx, t, redPod, w.ports["blue"], &sent)
	const packets = 20_000
	eventually(t, func() bool { return sent.Load() > packets })
	w.shouldAnswer(query{bluePod, "blue", "udp", web, dns.TypeA, time.Second}, "10.2.0.80")
	if read := testutil.ToFloat64(w.metrics.dropped.WithLabelValues(foreign)); read < tolerance || read > packets/2 {
		t.Errorf("%.0f of %d packets were read", read, sent.Load())
	}
	stop()
	former, err := reduce(podOf("red", "pod", redPod))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.directory.pods.GetIndexer().Delete(former); err != nil {
		t.Fatal(err)
	}
	w.addPod("blue", "heir", redPod)
	w.shouldAnswer(query{redPod, "blue", "udp", web, dns.TypeA, time.Second}, "10.2.0.80")
}

// TestFloods: a source is blocked above the tolerance, for the rest of the
// window. There are never more than a number of them.
func TestFloods(t *testing.T) {
	f := floods{socket: listenPacket(t, "127.0.0.1:0")}
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for range tolerance {
		f.note(address(0))
	}
	if len(f.blocked) > 0 {
		t.Errorf("blocked are %v", f.blocked)
	}
	for i := range 2 * sources {
		for range tolerance + 2 {
			f.note(address(i))
		}
	}
	if len(f.blocked) != sources || f.blocked[0] != address(0) {
		t.Errorf("blocked are %d, the first is %s", len(f.blocked), f.blocked[0])
	}
	f.expire()
	if len(f.blocked) != sources {
		t.Error("the window ended early")
	}
	f.began = f.began.Add(-window)
	f.expire()
	if len(f.blocked) > 0 || f.counts != nil {
		t.Errorf("after the window, blocked are %v", f.blocked)
	}
}

// TestFilter: the kernel drops what the sources send, and nothing else, with
// addresses of both families, at sockets of either.
func TestFilter(t *testing.T) {
	others := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::2"), netip.MustParseAddr("7f00:1::1")}
	for _, tt := range []struct{ at, source string }{{"127.0.0.1:0", "127.0.0.1"}, {"[::]:0", "127.0.0.1"}, {"[::]:0", "::1"}} {
		t.Run(tt.at+" from "+tt.source, func(t *testing.T) {
			socket := listenPacket(t, tt.at)
			client, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(tt.source)},
				&net.UDPAddr{IP: net.ParseIP(tt.source), Port: socket.LocalAddr().(*net.UDPAddr).Port})
			if err != nil {
				t.Skip("this machine has no such address: ", err)
			}
			defer client.Close()
			for i, blocked := range [][]netip.Addr{nil, others, append(others, netip.MustParseAddr(tt.source)), others} {
				if err := setFilter(socket, blocked); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Write([]byte{byte(i)}); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range []byte{0, 1, 3} {
				if err := socket.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
				packet := make([]byte, 1)
				if _, _, err := socket.ReadFrom(packet); err != nil || packet[0] != want {
					t.Errorf("got packet %d (%v), want %d", packet[0], err, want)
				}
			}
		})
	}
}

func listenPacket(t *testing.T, address string) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Skip("this machine has no such address: ", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}
