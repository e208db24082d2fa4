package addresses

import (
	"fmt"
	"net"
	"strconv"
)

// SplitHostPort reads the address of a server that others connect to: it has a
// host and a port.
func SplitHostPort(address string) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(address)
	number, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || number == 0 || host == "" {
		return "", 0, fmt.Errorf("%q must be a host and a port, such as 10.0.0.7:10550", address)
	}
	return host, int32(number), nil
}
