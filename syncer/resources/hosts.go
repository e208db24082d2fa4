package resources

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

const (
	// everyHost is the host of an object that gets the requests which match no
	// other. In a policy it allows all hosts.
	everyHost = "*"
	// below is the prefix of the claim of an object with a host below a domain.
	below = "below "
	// maxClaims bounds the claims of one object, which are kept in memory.
	maxClaims = 2000
	// maxHost is the maximum length of a host.
	maxHost = 253
)

// hosting is how objects of a kind have hosts. All kinds with hosts share the
// claims, so that no two tenants have the same host by objects of two kinds.
type hosting[T client.Object] struct {
	// kind is the name of the kind.
	kind string
	// of returns the hosts of an object; * matches the hosts of no other object.
	of func(T) []string
	// hint says how an object is limited to some hosts.
	hint string
}

// claims returns the claims by which an object is found: each host, and each
// domain above a host.
func (h hosting[T]) claims(obj T) []string {
	claims := h.of(obj)
	for domain := range domainsAbove(claims, math.MaxInt) {
		claims = append(claims, below+domain)
	}
	return claims
}

// domainsAbove returns the domains above hosts; if they are more than a number,
// only some.
func domainsAbove(hosts []string, most int) sets.Set[string] {
	domains := sets.New[string]()
	for _, host := range hosts {
		for domain := parent(host); domain != "" && !domains.Has(domain) && len(domains) <= most; domain = parent(domain) {
			domains.Insert(domain)
		}
	}
	return domains
}

// overlapping returns claims such that every object with a host that overlaps
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

// check rejects hosts that the tenant may not serve. It may serve those that
// its policy names or, if it names none, those that no object of another owner
// has.
func (h hosting[T]) check(v kinds.View, tenant T) error {
	allowed, hosts := v.Tenant.Policy.IngressHosts, h.of(tenant)
	if err := checkSizes(hosts); err != nil {
		return err
	}
	for _, host := range hosts {
		switch {
		case len(allowed) > 0:
			if !slices.ContainsFunc(allowed, func(pattern string) bool { return coversHost(pattern, host) }) {
				return fmt.Errorf("its host %s is not allowed; choose one of: %s", host, strings.Join(allowed, ", "))
			}
		case host == everyHost:
			return fmt.Errorf("it would get the requests for all hosts, including those of other owners: %s", h.hint)
		default:
			if why := h.checkRivals(v, tenant, host); why != nil {
				return why
			}
		}
	}
	return nil
}

// checkSizes rejects hosts that would take much memory: an apiserver that a
// tenant brings may not have validated them.
func checkSizes(hosts []string) error {
	for _, host := range hosts {
		if len(host) > maxHost {
			return fmt.Errorf("its host %s… is longer than %d characters", host[:maxHost], maxHost)
		}
	}
	if len(hosts)+len(domainsAbove(hosts, maxClaims)) > maxClaims {
		return errManyHosts
	}
	return nil
}

var errManyHosts = errors.New("it has too many hosts; split it into several objects")

// coversHost reports whether a pattern of a policy covers a host.
func coversHost(pattern, host string) bool {
	if pattern == everyHost || pattern == host {
		return true
	}
	domain, wildcard := strings.CutPrefix(pattern, everyHost)
	return wildcard && strings.HasSuffix(host, domain)
}

// checkRivals rejects a host that an object of another owner has. If two
// tenants claimed it at the same time, both have copies, and one of the copies
// is evicted.
func (h hosting[T]) checkRivals(v kinds.View, tenant T, host string) error {
	own := v.Copy(h.kind, tenant.GetName())
	has := own != nil && slices.Contains(h.of(own.(T)), host)
	taken := fmt.Errorf("its host %s is in use by another Ingress or route of the super cluster; choose another one", host)
	for _, claim := range overlapping(host) {
		rivals, err := v.Rivals(claim)
		if err != nil {
			return fmt.Errorf("its host %s cannot be compared with those of others yet: %w", host, err)
		}
		for _, rival := range rivals {
			switch {
			case !has:
				return taken
			case !precedes(own, rival):
				return kinds.EvictionError{Err: taken}
			}
		}
	}
	return nil
}

// precedes reports whether a copy may keep a host that a rival has as well. An
// object of the platform precedes all copies, and an older copy a newer one.
func precedes(own, rival client.Object) bool {
	mine, others := own.GetCreationTimestamp(), rival.GetCreationTimestamp()
	switch {
	case translate.OriginOf(rival).Cluster == "":
		return false
	case !mine.Equal(&others):
		return mine.Before(&others)
	}
	return own.GetUID() < rival.GetUID()
}
