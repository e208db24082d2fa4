package resolve

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// projectHeaders name a tenant: the second is how the proposal of projects
// spells it.
var projectHeaders = [...]string{"X-Kubernetes-Project", "X_kubernetes_project"}

// projectQuery is the parameter of a query that names a tenant.
const projectQuery = "project"

// takeHeader returns the tenant in the headers, and removes it.
func takeHeader(header http.Header) (string, *Refusal) {
	var names []string
	for _, key := range projectHeaders {
		names = append(names, header[key]...)
		delete(header, key)
	}
	return one(names, "header "+projectHeaders[0])
}

// takeQuery returns the tenant in a query, and the query without it.
func takeQuery(query string) (name, rest string, refusal *Refusal) {
	if !strings.Contains(query, "roject") && !strings.Contains(query, "%") {
		return "", query, nil
	}
	var names []string
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		key, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(key); err != nil || decoded != projectQuery {
			return false
		}
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
		names = append(names, value)
		return true
	})
	name, refusal = one(names, "parameter "+projectQuery)
	return name, strings.Join(kept, "&"), refusal
}

// one returns the only name that a form has.
func one(names []string, form string) (string, *Refusal) {
	switch {
	case len(names) == 0:
		return "", nil
	case len(names) > 1:
		return "", refuse("the request has the %s %d times", form, len(names))
	case !isName(names[0]):
		return "", refuse("the %s does not hold the name of a tenant: a name is a DNS label", form)
	}
	return names[0], nil
}

// parseHost returns the tenant in the host and the TLS server name. A
// connection that was opened for one tenant serves no other, and none that was
// opened without one serves a tenant by its host: browsers reuse a connection
// for all names in a certificate.
func parseHost(host, serverName, domain string) (string, *Refusal) {
	byHost, isOurs := labelBelow(host, domain)
	bySNI, _ := labelBelow(serverName, domain)
	switch {
	case serverName == "" || byHost == bySNI:
		return byHost, nil
	case bySNI != "" && !isOurs: // a kubeconfig with tls-server-name
		return bySNI, nil
	}
	return "", misdirected("the host of the request is not the one that the TLS connection was opened for")
}

// directLabel is below the domain and above the names of tenants whose
// connections are passed on as they are.
const directLabel = "direct"

// DirectLabel returns T of the server name T.direct.DOMAIN; empty for others.
func DirectLabel(serverName, domain string) string {
	if domain == "" {
		return ""
	}
	if label, _ := labelBelow(serverName, directLabel+"."+domain); isName(label) {
		return label
	}
	return ""
}

// IsBelow reports whether a server name is the domain or below it.
func IsBelow(serverName, domain string) bool {
	_, below := labelBelow(serverName, domain)
	return below
}

// labelBelow returns the label in front of the domain, and whether a host is the
// domain or below it.
func labelBelow(host, domain string) (label string, below bool) {
	if domain == "" {
		return "", false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == domain {
		return "", true
	}
	label, below = strings.CutSuffix(host, "."+domain)
	if !below {
		return "", false
	}
	return label, true
}
