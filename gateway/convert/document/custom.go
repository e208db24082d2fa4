package document

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// apiVersion converts the group and version of a kind. Native groups are the
// same on both sides, and so is what the super cluster will not understand.
func (d down) apiVersion(value any) (any, error) {
	text, ok := value.(string)
	if !ok {
		return nil, errShape
	}
	if isCustom(text) {
		text = d.Group(text)
	}
	return text, nil
}

// isCustom reports whether a group and version is of a custom resource.
func isCustom(version string) bool {
	parsed, err := schema.ParseGroupVersion(version)
	return err == nil && !kinds.IsNative(parsed.Group)
}

// apiVersion undoes the conversion.
func (u up) apiVersion(value any) any {
	text, _ := value.(string)
	if tenant, ok := u.TenantGroup(text); ok {
		return tenant
	}
	return value
}

// crdName converts the name of a CRD.
func (d down) crdName(value any) (any, error) {
	name, ok := value.(string)
	if !ok {
		return nil, errShape
	}
	return d.CRD(name)
}

// crdGroup converts the API group of a CRD. One in a native group would never be
// reached.
func (d down) crdGroup(value any) (any, error) {
	group, ok := value.(string)
	switch {
	case !ok:
		return nil, errShape
	case group == "": // the super cluster says that it is missing
		return group, nil
	case kinds.IsNative(group):
		return nil, fmt.Errorf("the API group %s is Kubernetes' own", group)
	case !strings.Contains(group, "."): // what begins it in the super cluster would hide that
		return nil, fmt.Errorf("the API group %q should be a domain with at least one dot", group)
	}
	return d.Group(group), nil
}
