package host

import (
	"context"
	"strings"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// named returns the control plane that clients reach by a name.
func (h *host) named(_ context.Context, serverName string) (controlPlane string, found bool) {
	return keyBelow(serverName, h.options.Domain)
}

// keyBelow returns the cluster key of a name below the domain of control planes.
func keyBelow(name, domain string) (key string, found bool) {
	if domain == "" {
		return "", false
	}
	key, below := strings.CutSuffix(name, "."+domain)
	return key, below && names.MayBeClusterKey(key)
}
