package translate

import "strings"

// The super cluster publishes its own CA under this name in every namespace;
// the tenant's ConfigMap, with the tenant's CA, needs another name there.
const (
	rootCA      = "kube-root-ca.crt"
	movedPrefix = "tenant-"
)

// SuperConfigMapName returns the name in the super cluster of a tenant's
// ConfigMap. It renames the root CA, and any name that could collide with the
// new name, so that the mapping stays injective.
func SuperConfigMapName(name string) string {
	if moves(name) {
		return movedPrefix + name
	}
	return name
}

// TenantConfigMapName is the inverse of SuperConfigMapName.
func TenantConfigMapName(name string) string {
	if rest, moved := strings.CutPrefix(name, movedPrefix); moved && moves(rest) {
		return rest
	}
	return name
}

// moves reports whether a name is that of the root CA, after any number of
// moved prefixes.
func moves(name string) bool {
	for strings.HasPrefix(name, movedPrefix) {
		name = name[len(movedPrefix):]
	}
	return name == rootCA
}
