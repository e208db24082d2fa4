package hosted

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// DefaultServiceCIDR is the default range of ClusterIPs of a control plane, and
// DefaultServiceCIDRv6 where its pods reach it at an IPv6 address.
const (
	DefaultServiceCIDR   = "10.96.0.0/16"
	DefaultServiceCIDRv6 = "fd00:10:96::/112"
)

// Spec describes one control plane. Only Name has no default.
type Spec struct {
	// Name identifies the control plane on this host. It is a DNS label that
	// also determines its etcd prefix, its PKI directory and its server name.
	Name string
	// ServiceCIDR is the range of ClusterIPs, of the IP family of the host's
	// PodAddress; 10.96.0.0/16 or fd00:10:96::/112 by default.
	ServiceCIDR string
	// SecondaryServiceCIDR is the range of the other IP family, for Services that
	// are dual-stack; empty for none.
	SecondaryServiceCIDR string
	// ClusterDomain is the DNS domain of the cluster; cluster.local by default.
	ClusterDomain string
	// Shared serves the control plane with the handler chain that the host has
	// for all of these, rather than with one of its own. Its data is the same
	// either way.
	Shared bool
	// Stock serves the control plane with upstream's kube-apiserver rather than
	// with a handler chain: for a super cluster, whose components and nodes use
	// its watch cache and Diagnostics. Its controllers always run.
	Stock bool
	// Controllers run beside the apiserver; those of a tenant when nil.
	Controllers []Controller
	// DaemonSets runs DaemonSets; otherwise a handler chain refuses their creation.
	DaemonSets bool
	// NodeAuthorization enables the Node authorizer and the NodeRestriction
	// admission plugin, for a Stock cluster with kubelets of its own.
	NodeAuthorization bool
	// KubeletCA verifies the serving certificates of kubelets (or of a proxy
	// for them) for logs and exec, in PEM. If empty, they are verified with the
	// control plane's own CA if NodeAuthorization is set, and not verified
	// otherwise.
	KubeletCA []byte
	// SeparateKubeletClientCA makes the apiserver connect to kubelets with a
	// certificate of an authority that signs nothing else. A proxy for kubelets
	// can then distinguish it from other clients that the cluster's own
	// authority signs for.
	SeparateKubeletClientCA bool
	// Network dials the connections that users of the apiserver cause: to
	// kubelets, webhooks, aggregated APIs, and proxied ones. Without it, the
	// apiserver opens no such connection.
	Network egress.Network
	// ExtraSANs has additional DNS names and IP addresses for the serving
	// certificate.
	ExtraSANs []string
	// ServiceAccountIssuer is the issuer of service account tokens, whose documents
	// the gateway serves; empty for one that is not public. Upstream's
	// kube-apiserver has none.
	ServiceAccountIssuer string
	// Diagnostics serves metrics, profiles, flags and the state of components
	// to authorized users of a Stock control plane. They expose the whole
	// process, with all its control planes.
	Diagnostics bool
	// Limits limits what the control plane stores, Requests what it has in flight,
	// and Expressions how much work its expressions are, in those of the usual
	// length; the zero values do not. SetLimits changes all.
	Limits      quota.Limits
	Requests    inflight.Limits
	Expressions int64
	// CertificateValidity is the validity of certificates, a year by default.
	// They are renewed before they expire; the authority is valid for ten
	// years.
	CertificateValidity time.Duration
}

// withDefaults returns the spec with what it does not say; serviceCIDR is the
// host's default.
func (s Spec) withDefaults(serviceCIDR string) Spec {
	s.ServiceCIDR = cmp.Or(s.ServiceCIDR, serviceCIDR)
	if s.ClusterDomain == "" {
		s.ClusterDomain = addresses.DefaultDomain
	}
	if s.CertificateValidity == 0 {
		s.CertificateValidity = defaultValidity
	}
	if s.Network == nil {
		s.Network = egress.Closed{}
	}
	if s.Controllers == nil {
		s.Controllers = controllersOfTenant(s.DaemonSets)
	}
	return s
}

func (s Spec) validate() error {
	if err := validateName(s.Name); err != nil {
		return err
	}
	if msgs := validation.IsDNS1123Subdomain(s.ClusterDomain); len(msgs) > 0 {
		return fmt.Errorf("control plane %q: the cluster domain %q is not a DNS name: %s", s.Name, s.ClusterDomain, strings.Join(msgs, ", "))
	}
	if _, err := s.serviceIP(addresses.Apiserver); err != nil {
		return fmt.Errorf("control plane %q: %w", s.Name, err)
	}
	if _, err := s.serviceCIDRs(); err != nil {
		return fmt.Errorf("control plane %q: %w", s.Name, err)
	}
	if s.Shared && s.Stock {
		return fmt.Errorf("control plane %q: upstream's kube-apiserver cannot be shared", s.Name)
	}
	if s.Stock && s.ServiceAccountIssuer != "" {
		return fmt.Errorf("control plane %q: upstream's kube-apiserver has no public issuer of tokens", s.Name)
	}
	if !s.Stock && (s.NodeAuthorization || s.Diagnostics) {
		return fmt.Errorf("control plane %q: only upstream's kube-apiserver has node authorization and diagnostics", s.Name)
	}
	if s.CertificateValidity < shortestValidity {
		return fmt.Errorf("control plane %q: certificates cannot live for %s: it has to be %s at least",
			s.Name, s.CertificateValidity, shortestValidity)
	}
	return nil
}

func validateName(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("%q cannot name a control plane: %s", name, strings.Join(msgs, ", "))
	}
	return nil
}

// serviceIP returns an address of the range of ClusterIPs.
func (s Spec) serviceIP(index int) (net.IP, error) {
	_, cidr, err := net.ParseCIDR(s.ServiceCIDR)
	if err != nil {
		return nil, fmt.Errorf("the service CIDR %q is invalid: %w", s.ServiceCIDR, err)
	}
	ip, err := netutils.GetIndexedIP(cidr, index)
	if err != nil {
		return nil, fmt.Errorf("the service CIDR %q is too small: %w", s.ServiceCIDR, err)
	}
	return ip, nil
}

// serviceCIDRs returns the ranges of ClusterIPs, of which the first is that of
// single-stack Services.
func (s Spec) serviceCIDRs() ([]net.IPNet, error) {
	var all []net.IPNet
	for _, text := range []string{s.ServiceCIDR, s.SecondaryServiceCIDR} {
		if text == "" {
			continue
		}
		_, cidr, err := net.ParseCIDR(text)
		if err != nil {
			return nil, fmt.Errorf("the service CIDR %q is invalid: %w", text, err)
		}
		all = append(all, *cidr)
	}
	if len(all) > 1 && netutils.IsIPv6CIDR(&all[0]) == netutils.IsIPv6CIDR(&all[1]) {
		return nil, fmt.Errorf("the service CIDRs %q and %q are of the same IP family", s.ServiceCIDR, s.SecondaryServiceCIDR)
	}
	return all, nil
}

// issuer returns the issuer of the control plane's service account tokens.
func (s Spec) issuer() string { return chain.AudiencePrefix + s.ClusterDomain }

// servingNames returns the names and addresses for the serving certificate. The
// hosts are those in the URLs of clients.
func (s Spec) servingNames(hosts ...string) (dnsNames []string, ips []net.IP, err error) {
	serviceIP, err := s.serviceIP(addresses.Apiserver)
	if err != nil {
		return nil, nil, err
	}
	dnsNames = []string{
		serverName(s.Name),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + s.ClusterDomain,
		"localhost",
	}
	ips = []net.IP{serviceIP, net.IPv4(127, 0, 0, 1)}
	for _, san := range slices.Concat(hosts, s.ExtraSANs) {
		switch ip := net.ParseIP(san); {
		case ip == nil && !slices.Contains(dnsNames, san):
			dnsNames = append(dnsNames, san)
		case ip != nil && !slices.ContainsFunc(ips, ip.Equal):
			ips = append(ips, ip)
		}
	}
	return dnsNames, ips, nil
}
