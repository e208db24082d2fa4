package chain

import (
	"errors"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

var errBypass = errors.New("a storage of a handler chain must use the chain's client of etcd, which is confined to the tenant of a call")

// connectNowhere lets no storage that bypasses [stores] be created: upstream
// would give it a client of its own, with the keys of all tenants.
func connectNowhere(transport *storagebackend.TransportConfig) {
	transport.ServerList = []string{placeholder} // required, and never reached
	transport.EgressLookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) { return nil, errBypass }
}
