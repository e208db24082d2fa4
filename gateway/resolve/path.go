package resolve

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// tenants is the element of a path in front of a tenant's name.
const tenants = "tenants"

func isName(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// parsePath removes the tenants from a path, and returns their names: that in
// front of it (/tenants/T/...) and that behind a version
// (/apis/G/V/tenants/T/...).
func parsePath(path string) (Asked, []string, *Refusal) {
	if !strings.HasPrefix(path, "/") { // of CONNECT, or of a URL without a path
		return Asked{}, nil, refuse("the path of the request does not begin with a slash")
	}
	asked, names := Asked{Path: path}, []string{}
	if rest, ok := strings.CutPrefix(path, "/"+tenants); ok && (rest == "" || rest[0] == '/') {
		name, inner, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if !isName(name) {
			return Asked{}, nil, refuse("the path begins with /%s and names no tenant: write /%s/NAME/api/...", tenants, tenants)
		}
		names = append(names, name)
		asked.Prefix, asked.Path = "/"+tenants+"/"+name, "/"+inner
	}
	if name, inner := cutFullPath(asked.Path); name != "" {
		names = append(names, name)
		asked.Path = inner
	}
	return asked, names, checkPath(asked.Path)
}

// cutFullPath removes the tenant behind the version of a path. An object of a
// resource that is called tenants, and its status and scale, name none.
func cutFullPath(path string) (name, inner string) {
	elements := strings.Split(path, "/") // the first is empty
	version := 2
	if elements[1] == "apis" {
		version = 3
	} else if elements[1] != "api" {
		return "", path
	}
	if len(elements) < version+4 || elements[version+1] != tenants {
		return "", path
	}
	rest := elements[version+3:]
	if len(rest) == 1 && (rest[0] == "" || rest[0] == "status" || rest[0] == "scale") {
		return "", path
	}
	kept := slices.Concat(elements[:version+1], rest)
	return elements[version+2], strings.Join(kept, "/")
}

// checkPath refuses a path that two programs could read differently. Behind
// proxy it belongs to the server that is proxied, which may use any path.
func checkPath(path string) *Refusal {
	decoded, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(decoded) || strings.ContainsFunc(decoded, unicode.IsControl) {
		return refuse("the path of the request is not UTF-8 without control characters")
	}
	own := path
	if head := proxiedBy(path); head != "" {
		own = head
	}
	if strings.Contains(own, "//") {
		return refuse("the path of the request has an empty element: write single slashes")
	}
	if encodesPlain(own) {
		return refuse("the path of the request encodes characters that need no encoding, or a slash")
	}
	for element := range strings.SplitSeq(own, "/") {
		if element == "." || element == ".." {
			return refuse("the path of the request has an element %q", element)
		}
	}
	return nil
}

// encodesPlain reports whether a path encodes a slash, a percent sign or a
// character that no client has to encode.
func encodesPlain(path string) bool {
	for {
		_, rest, found := strings.Cut(path, "%")
		if !found {
			return false
		}
		c, err := url.PathUnescape("%" + rest[:2]) // checkPath has decoded it
		if err != nil || strings.ContainsAny(c, "/%-._~") || isAlphanumeric(c[0]) {
			return true
		}
		path = rest
	}
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// proxied matches the part of a path that the apiserver reads itself, if it
// leads through the apiserver to another server.
var proxied = regexp.MustCompile(`^/api/v1/(nodes|namespaces/[^/]+/(pods|services))/[^/]+/proxy(/|$)`)

// proxiedBy returns that part of a path; empty if it leads to no other server. Most
// paths do not, and are spared the regular expression.
func proxiedBy(path string) string {
	if !strings.Contains(path, "/proxy") {
		return ""
	}
	return proxied.FindString(path)
}

// IsProxied reports whether the request is for a server behind the apiserver,
// whose the rest of the path, the query and the body are.
func (a Asked) IsProxied() bool { return proxiedBy(a.Path) != "" }
