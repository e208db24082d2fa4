// Package host is vc-host: it runs the control planes of VirtualClusters of
// provisioner Hosted in an installation. It follows HostedControlPlanes, which
// vc-manager creates in the root namespaces, and reports in their status. The
// data of control planes is in ControlPlaneStores, their keys are in Secrets of
// the root namespaces.
package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/names"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
)

// name is the component's, in user agents and field ownership.
const name = "vc-host"

const (
	defaultPort       = 6443
	defaultPeerPort   = 6444
	defaultDomainPort = 443
	maxPort           = 65535

	// maxDomain leaves room for the name of a control plane.
	maxDomain = validation.DNS1123SubdomainMaxLength - validation.DNS1123LabelMaxLength - 1
)

// Options are the settings of a host.
type Options struct {
	// Namespace has the Secrets with the credentials of stores.
	Namespace string
	// Listen and Port are where the apiservers are served. Port 0 is a free one.
	Listen string
	Port   int
	// Advertise is the host and port at which clients reach it.
	Advertise string
	// InternalAddress is the host and port at which clients inside the super
	// cluster reach it; Advertise if empty.
	InternalAddress string
	// Domain is a DNS domain below which each control plane has a name for
	// clients, at DomainPort; empty for none.
	Domain     string
	DomainPort int
	// PodAddress is the IP address of this process that tenants' pods reach;
	// empty if they do not. PodPorts is the range of the ports there; empty for any.
	PodAddress, PodPorts string
	// AgentAddress is the host and port at which tenants' apiservers reach
	// vn-agent; empty if they do not. AgentCAFile has the authorities of its
	// serving certificate.
	AgentAddress, AgentCAFile string
	// Replica is the name of this process among those that share the control
	// planes, and PeerPort is where it accepts connections that they pass on. Port 0
	// is a free one.
	Replica  string
	PeerPort int
	// ShareNamespace has the leases of the replicas.
	ShareNamespace string
	// Internal are the networks of the super cluster's pods and Services.
	Internal []string
	// Registerer registers the metrics.
	Registerer prometheus.Registerer
	provisioner.TenantOptions
	component.Options
}

// DefaultOptions are the settings of which nothing else is known.
func DefaultOptions() Options {
	return Options{
		Namespace: rbac.Namespace, Listen: "0.0.0.0", Port: defaultPort, DomainPort: defaultDomainPort, PeerPort: defaultPeerPort,
		ShareNamespace: rbac.HostReplicasNamespace,
		Registerer:     metrics.Registry, TenantOptions: provisioner.DefaultTenantOptions(), Options: component.Defaults(),
	}
}

// AddFlags binds the options to flags; what they hold is the flags' default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the Secrets with the credentials of ControlPlaneStores")
	flags.StringVar(&o.Listen, "listen", o.Listen, "IP address to serve the apiservers on")
	flags.IntVar(&o.Port, "port", o.Port, "port to serve the apiservers on; 0 picks a free one")
	flags.StringVar(&o.Advertise, "advertise-address", o.Advertise,
		"host and port at which clients reach the apiservers, such as that of a Service")
	flags.StringVar(&o.InternalAddress, "internal-address", o.InternalAddress,
		"host and port at which clients inside the super cluster reach the apiservers (default: --advertise-address)")
	flags.StringVar(&o.Domain, "endpoint-domain", o.Domain,
		"DNS domain below which each control plane has a name, so that its URL is https://NAME.DOMAIN; empty for --advertise-address")
	flags.IntVar(&o.DomainPort, "endpoint-port", o.DomainPort, "port of the URLs below --endpoint-domain")
	flags.StringVar(&o.PodAddress, "pod-address", o.PodAddress,
		"IP address of this process at which the pods of tenants reach their apiservers; empty if they do not")
	flags.StringVar(&o.PodPorts, "pod-ports", o.PodPorts,
		"range of the ports at --pod-address, of which each control plane takes one, such as 20000-29999; empty for any free port")
	flags.StringVar(&o.Replica, "replica", o.Replica, "name of this replica, which no other one has (default: the host name)")
	flags.IntVar(&o.PeerPort, "peer-port", o.PeerPort,
		"port for connections that other replicas pass on to this one; 0 picks a free one")
	flags.StringVar(&o.ShareNamespace, "share-namespace", o.ShareNamespace,
		"namespace of the leases by which the replicas share the control planes")
	flags.StringVar(&o.AgentAddress, "vn-agent-address", o.AgentAddress,
		"host and port at which tenants' apiservers reach vn-agent; empty for none")
	flags.StringVar(&o.AgentCAFile, "vn-agent-ca-file", o.AgentCAFile, "CA of the serving certificate of vn-agent in PEM")
	flags.StringSliceVar(&o.Internal, "internal-cidr", o.Internal,
		"networks of the super cluster's pods and Services, which --tenant-egress-cidr does not open")
	o.TenantOptions.AddFlags(flags)
	o.AddEndpointFlags(flags)
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	switch {
	case net.ParseIP(o.Listen) == nil:
		return fmt.Errorf("--listen is %q: it must be an IP address, such as 0.0.0.0", o.Listen)
	case o.Port < 0 || o.Port > maxPort:
		return fmt.Errorf("--port is %d: it must be 0 to %d", o.Port, maxPort)
	case o.PeerPort < 0 || o.PeerPort > maxPort:
		return fmt.Errorf("--peer-port is %d: it must be 0 to %d", o.PeerPort, maxPort)
	case o.PodAddress != "" && !isReachable(o.PodAddress):
		return fmt.Errorf("--pod-address is %q: it must be an IP address that other machines reach", o.PodAddress)
	case (o.AgentAddress == "") != (o.AgentCAFile == ""):
		return errors.New("--vn-agent-address and --vn-agent-ca-file need each other")
	}
	for _, network := range o.Internal {
		if _, err := netip.ParsePrefix(network); err != nil {
			return fmt.Errorf("--internal-cidr has %q: it must be a network in CIDR notation, such as 10.0.0.0/8", network)
		}
	}
	if err := o.validateAddresses(); err != nil {
		return err
	}
	return o.TenantOptions.Validate()
}

// validateAddresses checks how clients reach the control planes.
func (o *Options) validateAddresses() error {
	if _, _, err := splitAddress("advertise-address", o.Advertise); err != nil {
		return err
	}
	if o.InternalAddress != "" {
		if _, _, err := splitAddress("internal-address", o.InternalAddress); err != nil {
			return err
		}
	}
	if _, err := hosted.ParsePortRange(o.PodPorts); err != nil {
		return fmt.Errorf("--pod-ports: %w", err)
	}
	switch {
	case o.DomainPort < 1 || o.DomainPort > maxPort:
		return fmt.Errorf("--endpoint-port is %d: it must be 1 to %d", o.DomainPort, maxPort)
	case o.Domain == "":
		return nil
	case len(o.Domain) > maxDomain:
		return fmt.Errorf("--endpoint-domain has %d characters: it must have %d at most, since names of control planes precede it",
			len(o.Domain), maxDomain)
	case !names.IsCompleteHost(o.Domain):
		return fmt.Errorf("--endpoint-domain is %q: it must be a DNS domain in lower case, such as tenants.example.com", o.Domain)
	case names.IsReservedHost(o.Domain):
		return fmt.Errorf("--endpoint-domain is %q: its names are those of Services or of the platform; choose a domain of its own", o.Domain)
	}
	return nil
}

// isReachable reports whether a Service can have the address as an endpoint.
func isReachable(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsGlobalUnicast()
}

// splitAddress splits the value of a flag into a host and a port.
func splitAddress(flag, address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || host == "" || port < 1 || port > maxPort {
		return "", 0, fmt.Errorf("--%s is %q: it must be a host and a port, such as vc-host.vc-system.svc:443", flag, address)
	}
	return host, port, nil
}

// agentCA returns the authorities of vn-agent, if there are any.
func (o *Options) agentCA() ([]byte, error) {
	if o.AgentCAFile == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.AgentCAFile)
	if err != nil {
		return nil, fmt.Errorf("read --vn-agent-ca-file: %w", err)
	}
	return data, nil
}
