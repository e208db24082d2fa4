// Package difference compares a tenant's object with its copy, field by field.
package difference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Field is a field whose values differ. A value is JSON; empty if one side does
// not have the field.
type Field struct {
	Path   string `json:"path"`
	Tenant string `json:"tenant,omitempty"`
	Super  string `json:"super,omitempty"`
}

// hidden stands for a value that is not shown.
const hidden = "<hidden>"

// Fields returns the fields in which the contents of an object and of its copy
// differ. Fields that always differ, such as the UID, and the labels and
// annotations of the platform are left out. The values of Secrets are hidden.
func Fields(tenant, super map[string]any) []Field {
	here, there := leaves(tenant), leaves(super)
	var differing []Field
	for _, path := range slices.Sorted(maps.Keys(union(here, there))) {
		if here[path] != there[path] {
			differing = append(differing, Field{Path: path, Tenant: here[path], Super: there[path]})
		}
	}
	if tenant["kind"] == "Secret" {
		hide(differing)
	}
	return differing
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// hide hides values. Annotations can contain the last applied data.
func hide(fields []Field) {
	for i := range fields {
		if fields[i].Tenant != "" {
			fields[i].Tenant = hidden
		}
		if fields[i].Super != "" {
			fields[i].Super = hidden
		}
	}
}

// leaves returns the values of an object by their paths.
func leaves(object map[string]any) map[string]string {
	found := map[string]string{}
	for key, value := range object {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			metadata, _ := value.(map[string]any)
			addMetadata(found, metadata)
		default:
			add(found, key, value)
		}
	}
	return found
}

// addMetadata adds the labels and annotations that are the tenant's own.
func addMetadata(found map[string]string, metadata map[string]any) {
	labels, _ := metadata["labels"].(map[string]any)
	for key, value := range labels {
		if own, known := names.TenantLabel(key); known && !names.Reserved(own) {
			found[fmt.Sprintf("metadata.labels[%s]", own)] = text(value)
		}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		if !names.Reserved(key) {
			found[fmt.Sprintf("metadata.annotations[%s]", key)] = text(value)
		}
	}
}

// add adds the values below a path.
func add(found map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			add(found, path+"."+key, child)
		}
	case []any:
		for i, child := range v {
			name, rest := element(i, child)
			add(found, path+"["+name+"]", rest)
		}
	default:
		found[path] = text(v)
	}
}

// element identifies an element of a list: by its name or type, so that an
// element that one side adds does not shift the others, or by its index. It
// returns the rest of the element, too.
func element(index int, value any) (name string, rest any) {
	object, _ := value.(map[string]any)
	for _, key := range []string{"name", "type"} {
		if name, ok := object[key].(string); ok && len(object) > 1 {
			others := maps.Clone(object)
			delete(others, key)
			return name, others
		}
	}
	return strconv.Itoa(index), value
}

// text returns a value as JSON.
func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
