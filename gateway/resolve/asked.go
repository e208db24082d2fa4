package resolve

import (
	"net/http"
	"net/url"
)

// System is the name of the super cluster in all forms.
const System = "system"

// Projects is the name by which the API of projects is found in all forms.
const Projects = "projects"

// Asked is what a request says about its tenant, and what is forwarded.
type Asked struct {
	// Tenant is the name in the explicit forms, which agree; empty without one.
	Tenant string
	// Prefix is the part of the path in front of Path, such as /tenants/red.
	Prefix string
	// Path is the path for the tenant's apiserver, escaped as it was sent.
	Path string
	// Query is the query for it.
	Query string
}

// Parse reads the forms in which a request names its tenant: the path, the host
// below domain, the TLS server name, the query and the header. It removes them
// from the headers of the request.
func Parse(r *http.Request, domain string) (Asked, *Refusal) {
	asked, names, refusal := parsePath(r.URL.EscapedPath())
	if refusal != nil {
		return Asked{}, refusal
	}
	byHost, refusal := parseHost(r.Host, serverName(r), domain)
	if refusal != nil {
		return Asked{}, refusal
	}
	byHeader, refusal := takeHeader(r.Header)
	if refusal != nil {
		return Asked{}, refusal
	}
	byQuery := ""
	if asked.Query = r.URL.RawQuery; !asked.IsProxied() {
		if byQuery, asked.Query, refusal = takeQuery(r.URL.RawQuery); refusal != nil {
			return Asked{}, refusal
		}
	}
	asked.Tenant, refusal = agree(append(names, byHost, byQuery, byHeader))
	return asked, refusal
}

// URL returns the URL at an apiserver, whose own URL may have a path.
func (a Asked) URL(server *url.URL) (*url.URL, error) {
	target := *server
	joined, err := url.Parse(server.EscapedPath() + a.Path)
	if err != nil {
		return nil, err
	}
	target.Path, target.RawPath, target.RawQuery = joined.Path, joined.RawPath, a.Query
	return &target, nil
}

func serverName(r *http.Request) string {
	if r.TLS == nil {
		return ""
	}
	return r.TLS.ServerName
}

// agree returns the one name in the explicit forms; empty names are of forms
// that the request does not use.
func agree(names []string) (string, *Refusal) {
	agreed := ""
	for _, name := range names {
		switch {
		case name == "" || name == agreed:
		case agreed != "":
			return "", refuse("the request names two tenants, %q and %q", agreed, name)
		case !isName(name):
			return "", refuse("%q is not the name of a tenant: a name is a DNS label", name)
		default:
			agreed = name
		}
	}
	return agreed, nil
}
