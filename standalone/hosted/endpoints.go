package hosted

import (
	"net"
	"strconv"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// defaultHTTPS is the port of URLs that name none.
const defaultHTTPS = 443

// endpoint is a way of clients to a control plane through the host's port.
type endpoint struct {
	// address is a host, with a port unless it is the default one.
	address string
	// serverName is what clients send instead of the host; empty if the host is
	// a name of this control plane alone.
	serverName string
}

func (e endpoint) url() string { return "https://" + e.address }

// cluster returns the entry of a kubeconfig.
func (e endpoint) cluster(ca []byte) *clientcmdapi.Cluster {
	return &clientcmdapi.Cluster{Server: e.url(), TLSServerName: e.serverName, CertificateAuthorityData: ca}
}

// outside returns how clients reach a control plane.
func (h *Host) outside(name string) endpoint {
	switch {
	case h.opts.Domain == "":
		return endpoint{h.Address(), serverName(name)}
	case h.opts.DomainPort == 0, h.opts.DomainPort == defaultHTTPS:
		return endpoint{h.hostName(name), ""}
	default:
		return endpoint{net.JoinHostPort(h.hostName(name), strconv.Itoa(h.opts.DomainPort)), ""}
	}
}

// inside returns how clients inside the super cluster reach a control plane.
func (h *Host) inside(name string) endpoint {
	if h.opts.Internal == "" {
		return endpoint{h.Address(), serverName(name)}
	}
	return endpoint{h.opts.Internal, serverName(name)}
}

// hostName returns the name of a control plane below the domain.
func (h *Host) hostName(name string) string { return name + "." + h.opts.Domain }

// clientHosts returns the hosts in the URLs of a control plane.
func (h *Host) clientHosts(name string) []string {
	hosts := []string{h.opts.Advertise}
	if h.opts.PodAddress != nil {
		hosts = append(hosts, h.opts.PodAddress.String())
	}
	if host, _, err := net.SplitHostPort(h.opts.Internal); err == nil && host != h.opts.Advertise {
		hosts = append(hosts, host)
	}
	if h.opts.Domain != "" {
		hosts = append(hosts, h.hostName(name))
	}
	return hosts
}
