package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	controllers "github.com/virtualcluster/virtualcluster/controllers/app"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/provisioner"
	syncer "github.com/virtualcluster/virtualcluster/syncer/app"
)

const (
	defaultNodes  = 3
	defaultListen = "127.0.0.1"
	defaultPort   = 6443
	// defaultGatewayPort is the port of the gateway. Beside apiservers on
	// another port than theirs, it has a free one.
	defaultGatewayPort = 6444
	maxPort            = 65535
	// unsetPort has the data directory decide: the port of the last time, or
	// the default at the first.
	unsetPort = -1
)

// Options are the settings of a standalone VirtualCluster.
type Options struct {
	// DataDir holds everything that outlives the process. One process uses it
	// at a time.
	DataDir string
	// Observer observes the control planes that share a handler chain, for tests;
	// nil for none. It has no flag.
	Observer hosted.Observer
	// Nodes are what the super cluster has for nodes.
	Nodes Nodes
	// NodeImages is a directory with archives of images that a real node has
	// besides its own; empty for none.
	NodeImages string
	// Listen and Port are where the apiservers are served. Port 0 picks a free
	// one at the first start and keeps it.
	Listen string
	Port   int
	// Bare runs an ordinary cluster, with no part of VirtualCluster in it. Only the
	// command up has the flag.
	Bare bool
	// Manager, Syncer, Agent and Gateway enable vc-manager, vc-syncer, vn-agent
	// and vc-gateway in this process.
	Manager, Syncer, Agent, Gateway bool
	// GatewayPort is where the gateway serves on the address that the apiservers
	// do; 0 picks a free one at the first start and keeps it.
	GatewayPort int
	// GatewayOptions are the gateway's own.
	GatewayOptions gateway.Options
	// AgentPort is where the agent serves on the address that the apiservers
	// do; 0 picks a free one.
	AgentPort int
	// ManagerOptions are the manager's own.
	ManagerOptions controllers.Options
	// TenantDNS is that of tenants which do not choose: [names.Shared] is one for
	// all, [names.Dedicated] a CoreDNS each. If empty, it is the first on a real
	// node; simulated nodes run none.
	TenantDNS string
	// SyncerOptions are the syncer's own.
	SyncerOptions syncer.Options
	// TenantOptions are those of all tenants' control planes.
	provisioner.TenantOptions
	// Verbosity is how much is logged.
	Verbosity int
	// UnsafeNoFsync spares the disk. A crash of the machine may cost data.
	UnsafeNoFsync bool
}

// DefaultOptions are the settings of which nothing else is known.
func DefaultOptions() Options {
	return Options{
		Nodes: Nodes{Simulated: defaultNodes}, Listen: defaultListen, Port: unsetPort,
		Manager: true, Syncer: true, Agent: true, Gateway: true, GatewayPort: unsetPort, GatewayOptions: gateway.DefaultOptions(),
		SyncerOptions:  syncer.DefaultOptions(),
		ManagerOptions: controllers.Options{ServiceCIDRPool: defaultServicePool, ServiceCIDRPrefix: defaultServicePrefix},
		TenantOptions:  provisioner.DefaultTenantOptions(),
	}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.DataDir, "data-dir", o.DataDir, "directory for all data, credentials and logs")
	flags.Var(&o.Nodes, "nodes", "how many simulated nodes the super cluster has, or \"real\" for one that runs containers (root on Linux)")
	flags.StringVar(&o.NodeImages, "node-images", o.NodeImages, "directory with more archives of images (*.tar) for a real node")
	flags.StringVar(&o.Listen, "listen", o.Listen, "IP address to serve the apiservers on")
	flags.IntVar(&o.Port, "port", o.Port, "port to serve the apiservers on; 0 picks a free one and keeps it")
	flags.Lookup("port").DefValue = fmt.Sprintf("the last one, or %d", defaultPort)
	flags.BoolVar(&o.Manager, "manager", o.Manager, "run vc-manager in this process; without it, no tenant's control plane does")
	flags.BoolVar(&o.Syncer, "syncer", o.Syncer, "run vc-syncer in this process")
	flags.BoolVar(&o.Agent, "agent", o.Agent, "run vn-agent in this process; without it, tenants have no logs and no exec")
	flags.BoolVar(&o.Gateway, "gateway", o.Gateway, "run vc-gateway in this process, which serves all tenants at one address")
	flags.IntVar(&o.GatewayPort, "gateway-port", o.GatewayPort,
		"port that vc-gateway serves tenants on; 0 picks a free one at the first start and keeps it")
	flags.Lookup("gateway-port").DefValue = strconv.Itoa(defaultGatewayPort)
	flags.IntVar(&o.AgentPort, "agent-port", o.AgentPort, "port that vn-agent serves the kubelet API on; 0 picks a free one")
	flags.StringVar(&o.TenantDNS, "tenant-dns", o.TenantDNS,
		"DNS of tenants that do not choose: shared is one for all, dedicated a CoreDNS in each; simulated nodes run none")
	flags.Lookup("tenant-dns").DefValue = names.Shared + " with --nodes real"
	flags.BoolVar(&o.UnsafeNoFsync, "unsafe-no-fsync", o.UnsafeNoFsync,
		"do not wait for the disk: faster, but a crash of the machine may cost data")
	flags.IntVarP(&o.Verbosity, "verbosity", "v", o.Verbosity, "how much is logged, 0 to 10")
	o.TenantOptions.AddFlags(flags)
	addFlagsOf("vc-manager", o.ManagerOptions.AddFlags, flags, "converted-tenants", "service-cidr-pool", "service-cidr-prefix",
		"secondary-service-cidr-pool")
	addFlagsOf("vc-gateway", o.GatewayOptions.AddFlags, flags, "default-tenant", "domain", "external-cidr", "projects", "super-cluster")
	addFlagsOf("vc-syncer", o.SyncerOptions.AddFlags, flags,
		"workers", "slow-workers", "tenant-cap", "timeout", "node-linger", "metrics-bind-address", "enable-quota-validation", "vn-agent-address",
		"networks")
}

// addFlagsOf adds those flags of a program that mean something in this process.
func addFlagsOf(program string, addAll func(*pflag.FlagSet), flags *pflag.FlagSet, names ...string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	addAll(all)
	for _, flag := range names {
		if found := all.Lookup(flag); found != nil {
			found.Usage = program + ": " + found.Usage
			flags.AddFlag(found)
		}
	}
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	switch {
	case o.DataDir == "":
		return fmt.Errorf("--data-dir is missing: name a directory, such as --data-dir=%s", defaultDataDir)
	case o.NodeImages != "" && !o.Nodes.Real:
		return errors.New("--node-images is for --nodes real: simulated nodes run no images")
	case net.ParseIP(o.Listen) == nil:
		return fmt.Errorf("--listen is %q: it must be an IP address, such as 127.0.0.1", o.Listen)
	case o.Port != unsetPort && (o.Port < 0 || o.Port > maxPort):
		return fmt.Errorf("--port is %d: it must be 0 to %d", o.Port, maxPort)
	case o.GatewayPort != unsetPort && (o.GatewayPort < 0 || o.GatewayPort > maxPort):
		return fmt.Errorf("--gateway-port is %d: it must be 0 to %d", o.GatewayPort, maxPort)
	case o.AgentPort < 0 || o.AgentPort > maxPort:
		return fmt.Errorf("--agent-port is %d: it must be 0 to %d", o.AgentPort, maxPort)
	}
	if err := o.validateTenantDNS(); err != nil {
		return err
	}
	if err := errors.Join(o.TenantOptions.Validate(), o.validateServicePools()); err != nil {
		return err
	}
	return o.SyncerOptions.Validate()
}

func (o *Options) validateTenantDNS() error {
	switch {
	case !slices.Contains([]string{"", names.Shared, names.Dedicated}, o.TenantDNS):
		return fmt.Errorf("--tenant-dns is %q: it must be %s or %s", o.TenantDNS, names.Shared, names.Dedicated)
	case o.TenantDNS == names.Dedicated && !o.Nodes.Real:
		return fmt.Errorf("--tenant-dns=%s is for --nodes real: simulated nodes run no DNS", o.TenantDNS)
	default:
		return nil
	}
}

// sharedDNS reports whether tenants share a DNS. With simulated nodes, it is one
// that runs elsewhere.
func (o *Options) sharedDNS() bool {
	return !o.Bare && (o.TenantDNS == names.Shared || o.TenantDNS == "" && o.Nodes.Real)
}

// choosePort is the port to ask for, when remembered is that of the last time, or zero.
func (o *Options) choosePort(remembered int) int { return choosePort(o.Port, remembered, defaultPort) }

// chooseGatewayPort is the same for the gateway.
func (o *Options) chooseGatewayPort(remembered int) int {
	if o.Port != unsetPort && o.GatewayPort == unsetPort {
		return choosePort(0, remembered, 0)
	}
	return choosePort(o.GatewayPort, remembered, defaultGatewayPort)
}

func choosePort(asked, remembered, byDefault int) int {
	switch {
	case asked > 0:
		return asked
	case remembered > 0:
		return remembered
	case asked == unsetPort:
		return byDefault
	default:
		return 0
	}
}
