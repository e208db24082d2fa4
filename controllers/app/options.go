// Package app is the vc-manager as a command and as a manager inside another
// process. The program that composes it provides the provisioners.
package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
)

// Options say how a manager runs. The zero value is good for one inside another
// process: no ports, no leader election.
type Options struct {
	// DefaultProvisioner is for VirtualClusters that name none. If empty, they have to.
	DefaultProvisioner tenancyv1alpha1.ProvisionerType
	// ServiceCIDRPool is the range of the super cluster's Service addresses of
	// which each tenant gets a part of its own, of ServiceCIDRPrefix bits.
	// Empty: tenants have addresses that mean nothing in the super cluster.
	ServiceCIDRPool   string
	ServiceCIDRPrefix int
	// SecondaryServiceCIDRPool is the same of the other IP family, for tenants
	// that are dual-stack. Their parts have as many addresses.
	SecondaryServiceCIDRPool string
	// WebhookCertDir holds tls.crt and tls.key of the webhook.
	WebhookCertDir string
	// WebhookService is the Service of the webhook, for which the manager makes
	// a certificate of its own. Without it and WebhookCertDir, there is no webhook.
	WebhookService types.NamespacedName
	// WebhookPort is where it listens.
	WebhookPort int
	// CoreDNSImage is what tenants with Service addresses of their own run for
	// DNS; empty for no DNS.
	CoreDNSImage string
	// SharedDNS is the Service of vc-dns in the super cluster, which serves the
	// DNS of tenants that do not ask for one of their own; zero if each has its
	// own.
	SharedDNS types.NamespacedName
	// AgentAddress is the host and port at which tenants' apiservers reach
	// vn-agent for the metrics of pods and nodes; empty if they do not.
	// AgentCAFile has the authorities of its serving certificate.
	AgentAddress, AgentCAFile string
	// Gateway is in front of the control planes; without a URL, there is none.
	Gateway virtualcluster.Gateway
	// ConvertedTenants offers the provisioner Converted, whose tenants the gateway
	// serves.
	ConvertedTenants bool
	// Store is the etcd of this installation, whose certificates and
	// ControlPlaneStore the manager ensures. Without its Service, there is none.
	Store store.Store
	// Registerer registers the metrics; nil for none.
	Registerer prometheus.Registerer
	component.Options
}

var errTwoCertificates = errors.New("--webhook-cert-dir and --webhook-service exclude each other")

// DefaultServiceCIDRPrefix gives a tenant 4096 Services.
const DefaultServiceCIDRPrefix = 20

// AddFlags binds the options to flags; what they hold is the flags' default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar((*string)(&o.DefaultProvisioner), "default-provisioner", string(o.DefaultProvisioner),
		"provisioner of VirtualClusters whose spec names none; empty if they have to")
	flags.StringVar(&o.ServiceCIDRPool, "service-cidr-pool", o.ServiceCIDRPool,
		"range within the super cluster's own Service addresses of which each new tenant gets a part, "+
			"so that Services have the same address in both; empty for none")
	flags.IntVar(&o.ServiceCIDRPrefix, "service-cidr-prefix", cmp.Or(o.ServiceCIDRPrefix, DefaultServiceCIDRPrefix),
		"length of the prefix of each tenant's part of --service-cidr-pool")
	flags.StringVar(&o.SecondaryServiceCIDRPool, "secondary-service-cidr-pool", o.SecondaryServiceCIDRPool,
		"the same as --service-cidr-pool of the other IP family, of which each new tenant gets a part with as many addresses, for "+
			"Services that are dual-stack; empty for none")
	flags.StringVar(&o.WebhookCertDir, "webhook-cert-dir", o.WebhookCertDir,
		"directory with tls.crt and tls.key of the webhook that checks VirtualClusters when they are written; "+
			"without it and --webhook-service, there is no webhook")
	component.NameVar(flags, &o.WebhookService, "webhook-service",
		"Service of the webhook in this cluster as NAMESPACE/NAME, for which a certificate is made and renewed, in the Secret "+
			"of the same name; instead of --webhook-cert-dir")
	flags.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "port of the webhook, on all addresses")
	flags.StringVar(&o.CoreDNSImage, "coredns-image", o.CoreDNSImage,
		"image of the DNS that is kept in place in each tenant with a part of --service-cidr-pool; empty for none")
	component.NameVar(flags, &o.SharedDNS, "shared-dns",
		"Service of vc-dns in this cluster as NAMESPACE/NAME, which serves the DNS of tenants instead of a CoreDNS each; empty for none")
	flags.StringVar(&o.AgentAddress, "vn-agent-address", o.AgentAddress,
		"host and port at which tenants' apiservers reach vn-agent for the metrics of pods and nodes (metrics.k8s.io); empty for none")
	flags.StringVar(&o.AgentCAFile, "vn-agent-ca-file", o.AgentCAFile,
		"CA of the serving certificate of vn-agent in PEM, which has to be for the name "+metricsapi.ServerName+", too")
	flags.StringVar(&o.Gateway.URL, "gateway-url", o.Gateway.URL,
		"URL at which clients reach vc-gateway, such as https://gw.example.com; each tenant gets a kubeconfig for it; empty for no gateway")
	flags.StringVar(&o.Gateway.PodURL, "gateway-pod-url", o.Gateway.PodURL,
		"URL at which clients in pods of converted tenants reach vc-gateway; empty for that of --gateway-url")
	flags.StringVar(&o.Gateway.CAFile, "gateway-ca-file", o.Gateway.CAFile,
		"authorities of the serving certificate of vc-gateway in PEM, read again when they change; empty for the system's")
	flags.BoolVar(&o.ConvertedTenants, "converted-tenants", o.ConvertedTenants,
		"offer the provisioner Converted, whose tenants have no control plane; it requires --gateway-url, and the limits of such tenants a "+
			"vc-syncer with --converted-webhook-service")
	o.addStoreFlags(flags)
	o.Options.AddFlags(flags)
}

// addStoreFlags binds the options of the store.
func (o *Options) addStoreFlags(flags *pflag.FlagSet) {
	component.NameVar(flags, &o.Store.Service, "store-service",
		"headless Service of an etcd in this cluster as NAMESPACE/NAME, whose StatefulSet has the same name; its certificates are made "+
			"and renewed, in the Secrets NAME-members and NAME-client, and ControlPlaneStore "+store.Name+" refers to it; empty for none")
	flags.IntVar(&o.Store.Members, "store-members", o.Store.Members, "number of members of that etcd")
	flags.Var(&o.Store.Quota, "store-quota", "its --quota-backend-bytes, as a quantity")
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	if o.WebhookCertDir != "" && o.WebhookService.Name != "" {
		return errTwoCertificates
	}
	return errors.Join(o.validateStore(), o.validateServiceRanges(), o.Gateway.Validate())
}

func (o *Options) validateStore() error {
	if o.Store.Service.Name == "" {
		return nil
	}
	if err := o.Store.Validate(); err != nil {
		return fmt.Errorf("--store-members and --store-quota: %w", err)
	}
	return nil
}

func (o *Options) validateServiceRanges() error {
	if o.ServiceCIDRPool == "" && o.SecondaryServiceCIDRPool == "" {
		return nil
	}
	first, err := netip.ParsePrefix(o.ServiceCIDRPool)
	if err != nil {
		return fmt.Errorf("--service-cidr-pool is %q: it must be a network in CIDR notation, such as 10.104.0.0/13", o.ServiceCIDRPool)
	}
	if err := o.servicePool().Validate(); err != nil {
		return fmt.Errorf("--service-cidr-pool and --service-cidr-prefix: %w", err)
	}
	if o.SecondaryServiceCIDRPool == "" {
		return nil
	}
	second, err := netip.ParsePrefix(o.SecondaryServiceCIDRPool)
	if err != nil || first.Addr().Is4() == second.Addr().Is4() {
		return fmt.Errorf("--secondary-service-cidr-pool is %q: it must be a network of the other IP family than --service-cidr-pool, "+
			"such as fd00:104::/105", o.SecondaryServiceCIDRPool)
	}
	if err := o.secondaryServicePool().Validate(); err != nil {
		return fmt.Errorf("--secondary-service-cidr-pool: %w", err)
	}
	return nil
}

// servicePool returns the pool of which each tenant gets a part.
func (o *Options) servicePool() servicecidr.Pool {
	pool, _ := netip.ParsePrefix(o.ServiceCIDRPool) // an invalid one is none, and is refused by Validate
	return servicecidr.Pool{CIDR: pool, PartBits: cmp.Or(o.ServiceCIDRPrefix, DefaultServiceCIDRPrefix)}
}

// secondaryServicePool returns the pool of the other IP family, with parts of
// the same size.
func (o *Options) secondaryServicePool() servicecidr.Pool {
	first := o.servicePool()
	pool, _ := netip.ParsePrefix(o.SecondaryServiceCIDRPool) // as above
	if !first.Enabled() || !pool.IsValid() {
		return servicecidr.Pool{}
	}
	return servicecidr.Pool{CIDR: pool, PartBits: pool.Addr().BitLen() - (first.CIDR.Addr().BitLen() - first.PartBits)}
}
