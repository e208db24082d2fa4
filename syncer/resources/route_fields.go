package resources

import (
	"fmt"
	"maps"
	"slices"
)

// shape describes the fields that a value of a route may have. A field that is
// not described rejects the route, so that no version of the Gateway API adds a
// reference that is not checked.
type shape struct {
	// fields are the fields of an object, or of each object of a list; nil for a
	// text, a number, a boolean, or a list of these.
	fields map[string]shape
	// as is what the object refers to.
	as role
}

// role is what an object in a route refers to.
type role int

const (
	// noReference is an object that refers to nothing.
	noReference role = iota
	// attachment is a reference to what the route is attached to.
	attachment
	// backend is a reference to what the route leads to.
	backend
)

// plain is a field without fields.
var plain shape

// having returns the shape of an object whose fields are plain.
func having(names ...string) shape {
	s := shape{fields: map[string]shape{}}
	for _, name := range names {
		s.fields[name] = plain
	}
	return s
}

// with returns a shape with further fields.
func (s shape) with(more map[string]shape) shape {
	all := maps.Clone(s.fields)
	maps.Copy(all, more)
	return shape{all, s.as}
}

// referring returns a shape of an object that is a reference.
func (s shape) referring(as role) shape { return shape{s.fields, as} }

// Parts that routes have in common.
//
//nolint:goconst // a table of fields
var (
	parentRef  = having("group", "kind", "namespace", "name", "sectionName", "port").referring(attachment)
	backendRef = having("group", "kind", "namespace", "name", "port", "weight").referring(backend)

	headerChange = having("remove").with(map[string]shape{"set": having("name", "value"), "add": having("name", "value")})
	mirror       = having("percent").with(map[string]shape{
		"backendRef": having("group", "kind", "namespace", "name", "port").referring(backend),
		"fraction":   having("numerator", "denominator"),
	})
	pathChange = having("type", "replaceFullPath", "replacePrefixMatch")
	session    = having("sessionName", "absoluteTimeout", "idleTimeout", "type").with(map[string]shape{"cookieConfig": having("lifetimeType")})

	grpcFilter = having("type").with(map[string]shape{
		"requestHeaderModifier": headerChange, "responseHeaderModifier": headerChange, "requestMirror": mirror,
	})
	httpFilter = grpcFilter.with(map[string]shape{
		"requestRedirect": having("scheme", "hostname", "port", "statusCode").with(map[string]shape{"path": pathChange}),
		"urlRewrite":      having("hostname").with(map[string]shape{"path": pathChange}),
		"cors":            having("allowOrigins", "allowCredentials", "allowMethods", "allowHeaders", "exposeHeaders", "maxAge"),
	})
	match = having("type", "name", "value")
)

// routeFields are the fields of the spec of each kind of routes. Left out are
// references to objects that are not synced (extensionRef), or that no
// controller needs (externalAuth), and Gateways that the route does not name
// (useDefaultGateways).
//
//nolint:goconst // a table of fields
var routeFields = map[string]shape{
	"HTTPRoute": routeOf(having("name").with(map[string]shape{
		"matches": having("method").with(map[string]shape{
			"path": having("type", "value"), "headers": match, "queryParams": match,
		}),
		"filters":            httpFilter,
		"backendRefs":        backendRef.with(map[string]shape{"filters": httpFilter}),
		"timeouts":           having("request", "backendRequest"),
		"retry":              having("codes", "attempts", "backoff"),
		"sessionPersistence": session,
	})),
	"GRPCRoute": routeOf(having("name").with(map[string]shape{
		"matches":            having().with(map[string]shape{"method": having("type", "service", "method"), "headers": match}),
		"filters":            grpcFilter,
		"backendRefs":        backendRef.with(map[string]shape{"filters": grpcFilter}),
		"sessionPersistence": session,
	})),
	"TLSRoute": routeOf(having("name").with(map[string]shape{"backendRefs": backendRef})),
}

// routeOf returns the shape of the spec of a route with these rules.
func routeOf(rules shape) shape {
	return having("hostnames").with(map[string]shape{"parentRefs": parentRef, "rules": rules})
}

// each calls f with each reference in a value, by its path, until f returns an
// error. A value with other fields than those of the shape is an error.
func (s shape) each(path string, value any, f func(path string, as role, ref map[string]any) error) error {
	list, isList := value.([]any)
	if !isList {
		return s.eachIn(path, value, f)
	}
	for i, element := range list {
		if err := s.eachIn(fmt.Sprintf("%s[%d]", path, i), element, f); err != nil {
			return err
		}
	}
	return nil
}

// eachIn is each for a value that is no list.
func (s shape) eachIn(path string, value any, f func(path string, as role, ref map[string]any) error) error {
	fields, isObject := value.(map[string]any)
	switch _, isList := value.([]any); {
	case isList:
		return fmt.Errorf("%s is a list, which routes do not have there", path)
	case value == nil || !isObject && s.fields == nil:
		return nil
	case !isObject || s.fields == nil:
		return fmt.Errorf("%s has not the fields of a route", path)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		in, known := s.fields[name]
		if !known {
			return fmt.Errorf("%s.%s is not synced to the super cluster: remove it", path, name)
		}
		if err := in.each(path+"."+name, fields[name], f); err != nil {
			return err
		}
	}
	if s.as == noReference {
		return nil
	}
	return f(path, s.as, fields)
}
