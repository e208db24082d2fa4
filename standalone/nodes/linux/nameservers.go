package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
)

// outerNameservers returns the nameservers of this machine that the node can
// reach.
func outerNameservers() ([]string, error) {
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find nameservers: %w", err)
	}
	return reachable(string(text)), nil
}

// reachable returns the nameservers of a resolv.conf, except those on a
// loopback address: the node has its own loopback interface.
func reachable(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if ip := net.ParseIP(fields[1]); ip != nil && !ip.IsLoopback() {
			found = append(found, fields[1])
		}
	}
	return found
}
