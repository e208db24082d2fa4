package hosted

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// ErrNoPodPort means that all ports for pods are in use.
var ErrNoPodPort = errors.New("all ports for pods are in use")

const maxPort = 1<<16 - 1

// PortRange is a range of ports, with both ends. The zero value is any port.
type PortRange struct{ First, Last int }

// ParsePortRange parses a range such as 20000-29999; an empty text is any port.
func ParsePortRange(text string) (PortRange, error) {
	if text == "" {
		return PortRange{}, nil
	}
	first, last, _ := strings.Cut(text, "-")
	var r PortRange
	var errs [2]error
	r.First, errs[0] = strconv.Atoi(first)
	r.Last, errs[1] = strconv.Atoi(last)
	if errors.Join(errs[:]...) != nil || r.First < 1 || r.Last < r.First || r.Last > maxPort {
		return PortRange{}, fmt.Errorf("%q is no range of ports, such as 20000-29999", text)
	}
	return r, nil
}

// has reports whether a port is in the range.
func (r PortRange) has(port int) bool {
	if r == (PortRange{}) {
		return port > 0
	}
	return r.First <= port && port <= r.Last
}

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// listen listens on a free port of the range. It begins at a random one, so that
// it finds one soon while some are free.
func (r PortRange) listen(ip net.IP) (net.Listener, error) {
	if r == (PortRange{}) {
		return net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
	}
	number := r.Last - r.First + 1
	start := rand.IntN(number) //nolint:gosec // it is no secret
	for i := range number {
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: r.First + (start+i)%number})
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}
	return nil, fmt.Errorf("%w: the range is %s", ErrNoPodPort, r)
}
