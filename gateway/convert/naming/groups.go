package naming

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Group returns the name in the super cluster of the API group of one of the
// tenant's CRDs.
func (n Namer) Group(tenant string) string { return names.ConvertedGroup(n.Key) + tenant }

// TenantGroup undoes Group. It reports false for a group that is not of a CRD of
// the tenant.
func (n Namer) TenantGroup(super string) (string, bool) {
	if !strings.HasPrefix(super, names.ConvertedGroups) { // most groups: a hash costs more than the rest
		return super, false
	}
	return strings.CutPrefix(super, names.ConvertedGroup(n.Key))
}

// CRD returns the name of a CRD of the tenant in the super cluster: it ends in
// the API group.
func (n Namer) CRD(tenant string) (string, error) {
	resource, group, found := strings.Cut(tenant, ".")
	if !found {
		return "", fmt.Errorf("CRD %q: it must be spec.names.plural, a dot, and spec.group", tenant)
	}
	if most := validation.DNS1123SubdomainMaxLength - len(n.Group("")); len(tenant) > most {
		return "", fmt.Errorf("CRD %q: %s", tenant, validation.MaxLenError(most))
	}
	return resource + "." + n.Group(group), nil
}

// TenantCRD undoes CRD.
func (n Namer) TenantCRD(super string) (string, bool) {
	resource, group, _ := strings.Cut(super, ".")
	tenant, ok := n.TenantGroup(group)
	return resource + "." + tenant, ok
}
