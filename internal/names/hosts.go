package names

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ServerNameDomain is the domain of the TLS server names that vc-host gives to
// control planes. They are never resolved; "internal" is reserved for private use.
const ServerNameDomain = "vc.internal"

// reservedDomains are the domains of names that are no tenant's, with all names
// below them.
var reservedDomains = []string{ServerNameDomain, "localhost", "cluster.local", "kubernetes", "kubernetes.default"}

// serviceLabel is in the DNS name of every Service, whatever the domain of its
// cluster is.
const serviceLabel = "svc"

// IsReservedHost reports whether a host name in lower case can be one of the
// platform, of a Service, or of the machine itself.
func IsReservedHost(host string) bool {
	return slices.Contains(strings.Split(host, "."), serviceLabel) ||
		slices.ContainsFunc(reservedDomains, func(domain string) bool { return IsInDomain(host, domain) })
}

// IsInDomain reports whether a host name is a domain or below it.
func IsInDomain(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}

var hostName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// IsCompleteHost reports whether a text is a DNS name of several labels in lower
// case, and no IP address.
func IsCompleteHost(host string) bool {
	return len(host) <= validation.DNS1123SubdomainMaxLength && hostName.MatchString(host)
}

var clusterKey = regexp.MustCompile(`^[a-z0-9].*-[0-9a-f]{6}-.*[a-z0-9]$`)

// MayBeClusterKey reports whether a label has the form of a cluster key: no other
// name of that form is given to a control plane.
func MayBeClusterKey(label string) bool {
	return clusterKey.MatchString(label) && len(validation.IsDNS1123Label(label)) == 0
}
