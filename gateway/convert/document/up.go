package document

import (
	"fmt"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// up converts values of the super cluster's object in a namespace to those of
// the tenant.
type up struct {
	naming.Namer

	// namespace is the tenant's name of the object's namespace; empty if it has
	// none.
	namespace string
}

func (u up) turn(rule kinds.Rule, value any) (any, error) {
	switch rule.Means {
	case kinds.OwnNamespace:
		return u.own(value)
	case kinds.NamespaceName:
		return u.referred(value), nil
	case kinds.NamespaceSelector:
		return u.selector(value), nil
	case kinds.OwnPodSelector:
		return u.podSelector(value), nil
	case kinds.Labels:
		return u.labels(value, plainKeys), nil
	case kinds.NamespaceLabels:
		return u.labels(value, namespaceKeys), nil
	case kinds.Owner, kinds.RootOwner:
		return u.owner(value), nil
	case kinds.TypeVersion:
		return replaced(value, rule.Super, rule.Tenant), nil
	case kinds.StoredName:
		return unshelved(value), nil
	case kinds.RootNamespace:
		return absent, nil
	case kinds.ManagedFields:
		return u.managers(rule, value, plainKeys, false), nil
	case kinds.ManagedNamespaceFields:
		return u.managers(rule, value, namespaceKeys, true), nil
	case kinds.Audience:
		return u.audience(value), nil
	case kinds.FieldPath:
		return u.fieldPath(value), nil
	case kinds.APIVersion:
		return u.apiVersion(value), nil
	case kinds.CRDName, kinds.CRDGroup, kinds.Text:
		return u.text(value), nil
	case kinds.ConversionClient:
		return unhooked(value), nil
	case kinds.Hidden:
		return absent, nil
	case kinds.VolumeName, kinds.SecretType, kinds.Unserved, kinds.Reference:
		return value, nil
	}
	return nil, fmt.Errorf("the gateway has no conversion of a field that holds %s", rule.Means)
}

// own converts a namespace that must be the tenant's.
func (u up) own(value any) (any, error) {
	name, ok := value.(string)
	if !ok || name == "" {
		return value, nil
	}
	return u.TenantNamespace(name)
}

// referred converts a namespace that a field refers to. It need not exist, but
// the tenant has named it.
func (u up) referred(value any) any {
	name, ok := value.(string)
	if !ok {
		return value
	}
	if tenant, err := u.TenantNamespace(name); err == nil {
		return tenant
	}
	return u.Text(name, u.namespace)
}

func (u up) text(value any) any {
	if text, ok := value.(string); ok {
		return u.Text(text, u.namespace)
	}
	return value
}
