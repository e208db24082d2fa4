package tenants

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/prometheus/client_golang/prometheus"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
)

// Names of the plugins, which are their directives.
const (
	Listeners = "tenants"
	Names     = "tenantnames"
)

// The library's loggers are package variables by convention.
var log = clog.NewWithPlugin(Listeners)

// Register makes the plugins known to CoreDNS.
func Register() {
	plugin.Register(Listeners, setupListeners)
	plugin.Register(Names, setupNames)
}

// Config is the configuration of the plugin tenants.
type Config struct {
	// Kubeconfig leads to the super cluster; empty for the service account of
	// the pod.
	Kubeconfig string
	// Host is the address to listen at; empty for all.
	Host string
	// TTL is that of answers, in seconds.
	TTL    int
	Limits Limits
}

func setupListeners(c *caddy.Controller) error {
	config, err := parse(c)
	if err != nil {
		return plugin.Error(Listeners, err)
	}
	p, err := newPlugin(config)
	if err != nil {
		return plugin.Error(Listeners, err)
	}
	c.OnStartup(p.start)
	c.OnShutdown(p.stop)
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		p.Next = next
		return p
	})
	return nil
}

func setupNames(c *caddy.Controller) error {
	c.Next()
	if c.NextArg() {
		return plugin.Error(Names, c.ArgErr())
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &namesHandler{Next: next} })
	return nil
}

// parse reads the block of the Corefile.
func parse(c *caddy.Controller) (Config, error) {
	config := Config{TTL: 30, Limits: DefaultLimits()}
	numbers := map[string]*int{
		"ttl": &config.TTL, "rate": &config.Limits.Rate, "burst": &config.Limits.Burst, "concurrent": &config.Limits.Concurrent,
		"waiting": &config.Limits.Waiting, "connections": &config.Limits.Connections,
	}
	texts := map[string]*string{"kubeconfig": &config.Kubeconfig, "listen": &config.Host}
	c.Next()
	for c.NextBlock() {
		option, arguments := c.Val(), c.RemainingArgs()
		if len(arguments) != 1 {
			return config, c.ArgErr()
		}
		if text := texts[option]; text != nil {
			*text = arguments[0]
			continue
		}
		number := numbers[option]
		if number == nil {
			return config, c.Errf("unknown option %s", option)
		}
		value, err := strconv.Atoi(arguments[0])
		if err != nil || value < 1 {
			return config, c.Errf("%s is %q: it must be a number above 0", option, arguments[0])
		}
		*number = value
	}
	return config, nil
}

// tenantsPlugin opens the ports of tenants. It is the first handler, so that
// queries of tenants pass all others.
type tenantsPlugin struct {
	Next plugin.Handler

	listeners listeners
	stopped   context.CancelFunc
	running   sync.WaitGroup
}

func newPlugin(config Config) (*tenantsPlugin, error) {
	super, err := connect(config.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the super cluster: %w", err)
	}
	directory, err := NewDirectory(super)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(config.TTL)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(prometheus.DefaultRegisterer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return &tenantsPlugin{listeners: listeners{
		host: config.Host, limits: config.Limits, directory: directory, metrics: metrics,
		template: *template, open: map[string]*listener{},
	}}, nil
}

func connect(kubeconfig string) (clientset.Interface, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "vc-dns"
	return clientset.NewForConfig(config)
}

// newTemplate configures CoreDNS' plugin kubernetes as a cluster's DNS does.
func newTemplate(ttl int) (*kubernetes.Kubernetes, error) {
	block := fmt.Sprintf("kubernetes %s in-addr.arpa ip6.arpa {\n pods insecure\n fallthrough in-addr.arpa ip6.arpa\n ttl %d\n}",
		addresses.DefaultDomain, ttl)
	c := caddy.NewTestController("dns", block) // how plugins are configured by programs
	c.Next()
	return kubernetes.ParseStanza(c)
}

// start follows the super cluster, and opens the ports.
func (p *tenantsPlugin) start() error {
	core, err := dnsserver.NewServer("dns://"+cmp.Or(p.listeners.host, "tenants"), []*dnsserver.Config{{
		Zone: ".", Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return p.Next }},
	}})
	if err != nil {
		return err
	}
	p.listeners.core = core
	ctx, stop := context.WithCancel(context.Background())
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default: // one is noted already
		}
	}
	if err := p.listeners.directory.Run(ctx, changed); err != nil {
		stop()
		return err
	}
	p.stopped = stop
	p.running.Go(func() { p.listeners.run(ctx, changes) })
	return nil
}

// stop closes the ports.
func (p *tenantsPlugin) stop() error {
	p.stopped()
	p.running.Wait()
	return nil
}
