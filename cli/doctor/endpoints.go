package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/access"
	"github.com/virtualcluster/virtualcluster/cli/installation"
)

// sampled is how many tenants' addresses are tried.
const sampled = 10

// reached is how it went to connect to the apiserver of a tenant.
type reached struct {
	tenant, address string
	err             error
}

// endpoints connects to the addresses of tenants from this machine.
func endpoints(ctx context.Context, s *Super) Result {
	list := &tenancyv1alpha1.VirtualClusterList{}
	if err := s.Client.List(ctx, list); err != nil {
		return unread(fmt.Errorf("list VirtualClusters: %w", err))
	}
	var tried []reached
	for _, vc := range sample(list.Items, sampled) {
		address, err := s.reach(ctx, &vc)
		tried = append(tried, reached{vc.Namespace + "/" + vc.Name, address, err})
	}
	return endpointsVerdict(tried)
}

// reach connects to the apiserver of a tenant, and returns its address.
func (s *Super) reach(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (string, error) {
	config, err := access.Admin(ctx, s.Client, vc)
	if err != nil {
		return vc.Status.Endpoint, err
	}
	address, err := access.Address(config.Host)
	if err != nil {
		return vc.Status.Endpoint, err
	}
	return address, access.Reach(ctx, config)
}

// sample returns tenants whose control planes are ready and awake, one for each
// address, and not more than a number.
func sample(all []tenancyv1alpha1.VirtualCluster, most int) []tenancyv1alpha1.VirtualCluster {
	var chosen []tenancyv1alpha1.VirtualCluster
	seen := map[string]bool{}
	for _, vc := range all {
		awake := !vc.Spec.Paused && !meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
		ready := meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady)
		if !awake || !ready || seen[vc.Status.Endpoint] || len(chosen) == most {
			continue
		}
		seen[vc.Status.Endpoint] = true
		chosen = append(chosen, vc)
	}
	return chosen
}

// endpointsVerdict judges by how it went to connect to tenants.
func endpointsVerdict(tried []reached) Result {
	if len(tried) == 0 {
		return skipped("no control plane is ready and awake")
	}
	var inside int
	for _, r := range tried {
		var unresolved *net.DNSError
		var untrusted *tls.CertificateVerificationError
		switch {
		case r.err == nil:
		case errors.As(r.err, &untrusted):
			return failed("See which server has this address; its certificate has to be from the authority in the tenant's kubeconfig",
				"%s of %s: the certificate is not that of the tenant: %v", r.address, r.tenant, untrusted.Err)
		case isInside(r.address):
			inside++
		case errors.As(r.err, &unresolved):
			return failed("Create a DNS record for it, or for all names of the endpoint domain",
				"%s of %s does not resolve", unresolved.Name, r.tenant)
		default:
			return warning("Use kubectl vc connect, which forwards a port, or expose vc-host by a Service of type LoadBalancer or NodePort",
				"%s of %s cannot be reached from here: %v", r.address, r.tenant, r.err)
		}
	}
	if inside > 0 {
		return ok("tenants are served inside of the super cluster; kubectl vc connect forwards a port to them")
	}
	return ok("all addresses that were tried can be reached from here: %d", len(tried))
}

// isInside reports whether an address is the name of a Service, which only
// resolves in the super cluster.
func isInside(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && slices.Contains(strings.Split(host, "."), "svc")
}

// endpointDomain checks whether the names of tenants below a domain resolve; by
// default, below that of the installation.
func endpointDomain(domain string) func(context.Context, *Super) Result {
	return func(ctx context.Context, s *Super) Result {
		if domain == "" {
			var err error
			if domain, err = s.domain(ctx); err != nil {
				return unread(err)
			}
		}
		if domain == "" {
			return skipped("not checked: --endpoint-domain names the domain, if tenants are to have names below one")
		}
		// A name that exists only if the domain has a record for all names.
		name := "doctor-" + strings.ToLower(rand.Text()) + "." + domain
		addresses, err := net.DefaultResolver.LookupHost(ctx, name)
		return domainVerdict(domain, addresses, err)
	}
}

// domain returns the domain that vc-host is installed with; empty if there is
// none.
func (s *Super) domain(ctx context.Context) (string, error) {
	if s.Installation == "" {
		return "", nil
	}
	host := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: s.Installation, Name: installation.Host}
	if err := s.Client.Get(ctx, key, host); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Deployment %s: %w", key, err)
	}
	return domainOf(&host.Spec.Template.Spec), nil
}

// domainOf returns the domain in the arguments of vc-host.
func domainOf(pod *corev1.PodSpec) string {
	for _, c := range pod.Containers {
		for _, arg := range c.Args {
			if domain, found := strings.CutPrefix(arg, "--endpoint-domain="); found {
				return domain
			}
		}
	}
	return ""
}

// domainVerdict judges by the lookup of any name below a domain.
func domainVerdict(domain string, addresses []string, err error) Result {
	if err != nil {
		return failed(fmt.Sprintf("Create a DNS record for *.%s with the address of the load balancer of vc-host", domain),
			"names below %s do not resolve from here", domain)
	}
	return ok("*.%s resolves to %s", domain, enumerate(addresses))
}
