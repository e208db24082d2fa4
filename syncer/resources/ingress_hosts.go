package resources

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

const (
	// everyHost is the host of an ingress that gets the requests which match no
	// other. In a policy it allows all hosts.
	everyHost = "*"
	// below is the prefix of the claim of an ingress with a host below a
	// domain.
	below = "below "
	// maxClaims bounds the claims of one ingress, which are kept in memory.
	maxClaims = 2000
)

// ingressHosts returns the hosts that an ingress serves or has a certificate
// for. A * matches any number of labels: one according to the specification,
// but several in some controllers.
func ingressHosts(spec *networkingv1.IngressSpec) []string {
	var hosts []string
	seen := sets.New[string]()
	add := func(host string) {
		host = cmp.Or(host, everyHost)
		if !seen.Has(host) {
			hosts = append(hosts, host)
		}
		seen.Insert(host)
	}
	if spec.DefaultBackend != nil {
		add(everyHost)
	}
	for _, rule := range spec.Rules {
		add(rule.Host)
	}
	for _, tls := range spec.TLS {
		if len(tls.Hosts) == 0 {
			add(everyHost)
		}
		for _, host := range tls.Hosts {
			add(host)
		}
	}
	return hosts
}

// ingressClaims returns the claims by which an ingress is found: each host, and
// each domain above a host.
func ingressClaims(ingress *networkingv1.Ingress) []string {
	claims, domains := ingressHosts(&ingress.Spec), sets.New[string]()
	for _, host := range claims {
		for domain := parent(host); domain != "" && !domains.Has(domain); domain = parent(domain) {
			domains.Insert(domain)
		}
	}
	for domain := range domains {
		claims = append(claims, below+domain)
	}
	return claims
}

// overlapping returns claims such that every ingress with a host that overlaps
// this one has at least one of them. The host * overlaps none, since every
// other host takes precedence over it.
func overlapping(host string) []string {
	claims := []string{host}
	domain, wildcard := strings.CutPrefix(host, everyHost+".")
	if wildcard {
		claims = append(claims, below+domain)
	} else {
		domain = parent(host)
	}
	for ; domain != ""; domain = parent(domain) {
		if claim := everyHost + "." + domain; !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// parent returns the parent of a domain; empty for one without a dot.
func parent(domain string) string {
	_, rest, _ := strings.Cut(domain, ".")
	return rest
}

// checkHosts rejects hosts that the tenant may not serve. It may serve those
// that its policy names or, if it names none, those that no ingress of another
// owner has.
func checkHosts(v kinds.View, tenant *networkingv1.Ingress) error {
	allowed := v.Tenant.Policy.IngressHosts
	if len(ingressClaims(tenant)) > maxClaims {
		return errManyHosts
	}
	for _, host := range ingressHosts(&tenant.Spec) {
		switch {
		case len(allowed) > 0:
			if !slices.ContainsFunc(allowed, func(pattern string) bool { return coversHost(pattern, host) }) {
				return fmt.Errorf("its host %s is not allowed; choose one of: %s", host, strings.Join(allowed, ", "))
			}
		case host == everyHost:
			return errEveryHost
		default:
			if why := checkRivals(v, tenant, host); why != nil {
				return why
			}
		}
	}
	return nil
}

var errManyHosts = errors.New("it has too many hosts; split it into several Ingresses")

var errEveryHost = errors.New("it would get the requests for all hosts, including those of other owners: " +
	"name a host in each rule and in each entry of spec.tls, and omit spec.defaultBackend")

// coversHost reports whether a pattern of a policy covers a host.
func coversHost(pattern, host string) bool {
	if pattern == everyHost || pattern == host {
		return true
	}
	domain, wildcard := strings.CutPrefix(pattern, everyHost)
	return wildcard && strings.HasSuffix(host, domain)
}

// checkRivals rejects a host that an ingress of another owner has. If two
// tenants claimed it at the same time, both have copies, and one of the copies
// is evicted.
func checkRivals(v kinds.View, tenant *networkingv1.Ingress, host string) error {
	own, _ := v.Copy(ingressKind, tenant.Name).(*networkingv1.Ingress)
	has := own != nil && slices.Contains(ingressHosts(&own.Spec), host)
	taken := fmt.Errorf("its host %s is in use by another Ingress of the super cluster; choose another one", host)
	for _, claim := range overlapping(host) {
		for _, rival := range v.Rivals(ingressKind, claim) {
			switch {
			case !has:
				return taken
			case !precedes(own, rival.(*networkingv1.Ingress)):
				return kinds.EvictionError{Err: taken}
			}
		}
	}
	return nil
}

// precedes reports whether a copy may keep a host that a rival has as well. An
// ingress of the platform precedes all copies, and an older copy a newer one.
func precedes(own, rival *networkingv1.Ingress) bool {
	switch {
	case translate.OriginOf(rival).Cluster == "":
		return false
	case !own.CreationTimestamp.Equal(&rival.CreationTimestamp):
		return own.CreationTimestamp.Before(&rival.CreationTimestamp)
	}
	return own.UID < rival.UID
}
