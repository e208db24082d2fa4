package document

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// typeVersion converts the type of an object that the super cluster has as
// another one. An object of that type is not one of the tenant.
func typeVersion(rule kinds.Rule, value any) (any, error) {
	if value != rule.Tenant {
		return nil, fmt.Errorf("the API version in the data does not match the expected API version (%s)", rule.Tenant)
	}
	return rule.Super, nil
}

// replaced returns a value, or its replacement.
func replaced(value any, before, after string) any {
	if value == before {
		return after
	}
	return value
}

// storedName converts the name of a shelved object.
func (down) storedName(value any) (any, error) {
	name, ok := value.(string)
	if !ok {
		return nil, errShape
	}
	return naming.Shelved(name)
}

func unshelved(value any) any {
	if name, ok := value.(string); ok {
		return naming.Unshelved(name)
	}
	return value
}

// grouped are the kinds that bindings refer to, in the API group of RBAC.
var grouped = map[string]bool{rbacv1.UserKind: true, rbacv1.GroupKind: true, "Role": true, "ClusterRole": true}

// reference sets the API group of a subject or a role, as a cluster does.
func reference(value any) (any, error) {
	reference, ok := value.(Object)
	if !ok {
		return nil, errShape
	}
	kind, _ := reference["kind"].(string)
	if group, given := reference["apiGroup"]; grouped[kind] && (!given || group == "") {
		reference["apiGroup"] = rbacv1.GroupName
	}
	return reference, nil
}

// tenantVersion returns the version of a list as the tenant knows it.
func (r *Response) tenantVersion(value any) any {
	rule := r.Kind.Fields().Fields["apiVersion"]
	if rule == nil {
		return value
	}
	return replaced(value, rule.Rule.Super, rule.Rule.Tenant)
}

// Text takes the names of the super cluster out of a text about the request.
func (r *Response) Text(text string) string {
	if r.Kind.IsStored() {
		if r.Kind.Group == "" { // the name of a resource ends without a group
			text = strings.ReplaceAll(text, "."+r.Kind.Stored.Group, "")
		}
		text = naming.UnshelvedText(strings.ReplaceAll(text, r.Kind.Stored.Group, r.Kind.Group))
	}
	return r.Namer.Text(text, r.Namespace)
}

// DropNulls removes the fields without a value, as an apiserver does that knows
// the type: the schema of a custom resource would refuse them.
func DropNulls(value any) {
	switch value := value.(type) {
	case Object:
		for key, each := range value {
			if each == nil {
				delete(value, key)
			}
			DropNulls(each)
		}
	case []any:
		for _, each := range value {
			DropNulls(each)
		}
	}
}
