package document

import (
	"strconv"
	"strings"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// managedField begins the names of fields in managedFields.
const managedField = "f:"

// managers removes the platform's labels and annotations from managedFields.
func (u up) managers(rule kinds.Rule, value any, keys keys, hidesOwners bool) any {
	entries, ok := value.([]any)
	if !ok {
		return value
	}
	for _, each := range entries {
		entry, _ := each.(Object)
		if version, ok := entry["apiVersion"]; ok {
			entry["apiVersion"] = replaced(u.apiVersion(version), rule.Super, rule.Tenant)
		}
		fields, _ := entry["fieldsV1"].(Object)
		metadata, ok := fields["f:metadata"].(Object)
		if !ok {
			continue
		}
		rename(metadata, "f:labels", keys)
		rename(metadata, "f:annotations", plainKeys)
		if hidesOwners {
			delete(metadata, "f:ownerReferences")
		}
		if len(metadata) == 0 {
			delete(fields, "f:metadata")
		}
	}
	return entries
}

// managers converts the API versions in managedFields. The super cluster forgets
// managers of versions that it does not know.
func (d down) managers(rule kinds.Rule, value any) (any, error) {
	entries, ok := value.([]any)
	if !ok {
		return nil, errShape
	}
	for i, each := range entries {
		entry, _ := each.(Object)
		version, ok := entry["apiVersion"]
		if !ok {
			continue
		}
		super, err := d.apiVersion(version)
		if err != nil {
			return nil, at(strconv.Itoa(i), err)
		}
		entry["apiVersion"] = replaced(super, rule.Tenant, rule.Super)
	}
	return entries, nil
}

// rename converts the keys of managed labels or annotations. The key "." stands
// for all of them.
func rename(metadata Object, field string, keys keys) {
	managed, ok := metadata[field].(Object)
	if !ok {
		return
	}
	converted := make(Object, len(managed))
	for name, value := range managed {
		key, isField := strings.CutPrefix(name, managedField)
		if !isField {
			converted[name] = value
		} else if tenant := keys.tenant(key); tenant != "" {
			converted[managedField+tenant] = value
		}
	}
	if metadata[field] = converted; len(converted) == 0 {
		delete(metadata, field)
	}
}
