package keyspace

import (
	"bytes"
	"fmt"
)

// RecordPrefix returns the prefix of all records of a resource in a tenant. A
// resource is named by its prefix in the storage of an apiserver, without
// slashes around it, such as pods, services/specs or example.com/widgets.
func RecordPrefix(tenant, resource string) (string, error) {
	if err := validate(tenant); err != nil {
		return "", err
	}
	below := "/" + resource + "/"
	if split, _, ok := SplitRecord([]byte(below + "name")); !ok || string(split) != resource {
		return "", fmt.Errorf("%q is no prefix of a resource", resource)
	}
	return Prefix(tenant) + below, nil
}

// SplitRecord divides a key below a tenant's prefix, as Split returns it, into
// the resource and the name of a record: a name, or a namespace and a name.
//
// The prefix of a resource has one segment, except the prefixes that begin with
// the name of an API group, and those of Services and Endpoints.
func SplitRecord(below []byte) (resource, name []byte, ok bool) {
	below, ok = bytes.CutPrefix(below, []byte("/"))
	if !ok {
		return nil, nil, false
	}
	end := bytes.IndexByte(below, '/')
	if end < 1 {
		return nil, nil, false
	}
	if first := below[:end]; bytes.IndexByte(first, '.') >= 0 || string(first) == "services" {
		second := bytes.IndexByte(below[end+1:], '/')
		if second < 1 {
			return nil, nil, false
		}
		end += 1 + second
	}
	resource, name = below[:end], below[end+1:]
	return resource, name, len(name) > 0
}
