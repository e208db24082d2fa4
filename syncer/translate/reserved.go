package translate

import "strings"

// The super cluster keeps a config map of its own CA under this name in every namespace; the tenant's, which holds the
// tenant's CA, has to go by another name.
const (
	rootCA      = "kube-root-ca.crt"
	movedPrefix = "tenant-"
)

// SuperConfigMapName is the super cluster's name of a tenant's config map. It moves the root CA out of the way, and whatever
// stands where it moves to, so that no two names meet.
func SuperConfigMapName(name string) string {
	if moves(name) {
		return movedPrefix + name
	}
	return name
}

// TenantConfigMapName undoes SuperConfigMapName.
func TenantConfigMapName(name string) string {
	if rest, moved := strings.CutPrefix(name, movedPrefix); moved && moves(rest) {
		return rest
	}
	return name
}

// moves says whether a name is the root CA's with any number of moved prefixes before it.
func moves(name string) bool {
	for strings.HasPrefix(name, movedPrefix) {
		name = name[len(movedPrefix):]
	}
	return name == rootCA
}
