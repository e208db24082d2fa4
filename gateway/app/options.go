package app

import (
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/virtualcluster/virtualcluster/gateway/front"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// Options are the settings of a gateway.
type Options struct {
	// Address is where it serves tenants.
	Address string
	// Listeners serve instead of Address, for a program that has to know the
	// port before it starts a gateway.
	Listeners []net.Listener
	// CertFile and KeyFile are the serving certificate and its key. They are
	// read again when they change.
	CertFile, KeyFile string
	// CertSecret is the Secret with a certificate that the gateway makes and
	// renews instead, for Hosts.
	CertSecret types.NamespacedName
	Hosts      []string
	// Domain is the one below which each tenant has a host; empty for none.
	Domain string
	// DefaultTenant is the VirtualCluster of callers without a tenant; zero for
	// none. The gateway creates it if there is none.
	DefaultTenant types.NamespacedName
	// SuperCluster says which users of the super cluster reach it; by default
	// none.
	SuperCluster SuperCluster
	// Projects serves the API of projects, and lets members reach their tenants.
	Projects bool
	// Limits are those of a caller.
	Limits front.Limits
	// TenantEgress are the networks outside of the super cluster that webhooks of
	// converted tenants may be in, and Internal those of the super cluster's pods and
	// Services.
	TenantEgress, Internal []string
	// External are the networks in which external control planes may be, beside
	// public addresses.
	External []string
	// Egress decides about connections to these webhooks instead, for a program that
	// has such a policy.
	Egress *egress.Policy
	// AccessLog logs each request.
	AccessLog bool
	component.Options
	// Registerer is where the metrics go.
	Registerer prometheus.Registerer
}

// DefaultOptions are the settings of a gateway of which nothing else is known.
func DefaultOptions() Options {
	return Options{Address: ":8443", SuperCluster: NoUsers, Limits: front.DefaultLimits(), AccessLog: true, Registerer: metrics.Registry}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Address, "bind-address", o.Address, "address that serves tenants")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "serving certificate in PEM, read again when it changes")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "private key of the serving certificate in PEM")
	component.NameVar(flags, &o.CertSecret, "tls-secret",
		"Secret as NAMESPACE/NAME in which the gateway keeps a serving certificate that it makes and renews, with its CA, "+
			"instead of --tls-cert-file")
	flags.StringSliceVar(&o.Hosts, "tls-hosts", o.Hosts, "names and addresses for which the certificate in --tls-secret is made")
	flags.StringVar(&o.Domain, "domain", o.Domain,
		"domain below which each tenant has a host, such as gw.example.com for CLUSTERKEY.gw.example.com; empty for none")
	component.NameVar(flags, &o.DefaultTenant, "default-tenant",
		"VirtualCluster as NAMESPACE/NAME that serves callers without a tenant; it is created if there is none; empty for none")
	flags.StringVar((*string)(&o.SuperCluster), "super-cluster", string(o.SuperCluster),
		"users of the super cluster who reach it through the gateway, as the tenant system or without a tenant: None; those with Tokens, "+
			"which are forwarded unchanged; or by Impersonation those with client certificates, too, as far as the RBAC of the gateway permits")
	flags.BoolVar(&o.Projects, "projects", o.Projects,
		"show users of the super cluster the projects of which they are members, and forward their requests to these")
	flags.IntVar(&o.Limits.Requests, "requests-per-caller", o.Limits.Requests, "how many requests a caller may have in flight")
	flags.IntVar(&o.Limits.Streams, "streams-per-caller", o.Limits.Streams,
		"how many watches, upgrades and proxied requests a caller may have in flight")
	flags.IntVar(&o.Limits.Passed, "passed-connections", o.Limits.Passed,
		"how many connections may be passed to control planes without being decrypted; 0 for none")
	flags.IntVar(&o.Limits.PassedPerTenant, "passed-connections-per-tenant", o.Limits.PassedPerTenant,
		"how many of them may be to the control plane of one tenant")
	flags.Int64Var(&o.Limits.Body, "max-body", o.Limits.Body,
		"size of a request in bytes, except for one to a server behind an apiserver")
	flags.StringSliceVar(&o.TenantEgress, "tenant-egress-cidr", o.TenantEgress,
		"networks outside of the super cluster in which converted tenants may have webhooks; none by default")
	flags.StringSliceVar(&o.External, "external-cidr", o.External,
		"networks in which the control planes of External tenants may be, beside public addresses, such as 10.8.0.0/16")
	flags.StringSliceVar(&o.Internal, "internal-cidr", o.Internal,
		"networks of the super cluster's pods and Services, which --tenant-egress-cidr does not open, "+
			"and in which no control plane of an External tenant may be unless --external-cidr contains them")
	flags.BoolVar(&o.AccessLog, "access-log", o.AccessLog, "log a line for each request, without query and headers")
	o.AddEndpointFlags(flags)
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	var errs []error
	if o.Address == "" && len(o.Listeners) == 0 {
		errs = append(errs, errors.New("--bind-address is missing"))
	}
	files := o.CertFile != "" && o.KeyFile != ""
	if files == (o.CertSecret.Name != "") {
		errs = append(errs, errors.New("either --tls-cert-file and --tls-private-key-file must name the serving certificate and its key, "+
			"or --tls-secret a Secret"))
	}
	if o.CertSecret.Name != "" && len(o.Hosts) == 0 {
		errs = append(errs, errors.New("--tls-hosts must name the hosts by which clients reach the gateway"))
	}
	if o.Domain != "" && len(validation.IsDNS1123Subdomain(o.Domain)) > 0 {
		errs = append(errs, fmt.Errorf("--domain is %q: it must be a DNS name in lower case", o.Domain))
	}
	_, errEgress := egress.NewPolicy(o.TenantEgress, o.Internal)
	_, errExternal := egress.NewExternal(o.External, nil)
	return errors.Join(append(errs, errEgress, errExternal, o.SuperCluster.validate(), o.Limits.Validate())...)
}

// hasSuperUsers reports whether users of the super cluster use the gateway.
func (o *Options) hasSuperUsers() bool { return o.SuperCluster != NoUsers || o.Projects }
