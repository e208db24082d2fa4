package keyspace

import (
	"bytes"
	"fmt"
	"strings"
)

// Root is the prefix of the keys of all tenants.
const Root = "/controlplanes/"

// Prefix returns the prefix of a tenant's keys, without a slash at its end. The
// keys begin with the prefix and a slash.
func Prefix(tenant string) string { return Root + tenant }

// Split returns the tenant of a key, and the key below the tenant's prefix,
// which begins with a slash.
func Split(key []byte) (tenant string, rest []byte, ok bool) {
	below, ok := bytes.CutPrefix(key, []byte(Root))
	if !ok {
		return "", nil, false
	}
	slash := bytes.IndexByte(below, '/')
	if slash < 1 {
		return "", nil, false
	}
	return string(below[:slash]), below[slash:], true
}

// validate returns an error for a name whose prefix could contain the keys of
// another tenant.
func validate(tenant string) error {
	if tenant == "" || strings.Contains(tenant, "/") {
		return fmt.Errorf("%q cannot name a tenant", tenant)
	}
	return nil
}
