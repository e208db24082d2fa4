package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string  `json:"op"`
	Path  string  `json:"path"`
	From  *string `json:"from,omitempty"`
	Value *any    `json:"value,omitempty"`
}

// JSONPatchDown converts a JSON patch of the tenant.
func JSONPatchDown(n naming.Namer, fields *kinds.Field, data []byte) ([]byte, error) {
	var parsed any
	if err := parse(data, &parsed); err != nil {
		return nil, err
	}
	list, ok := parsed.([]any)
	if !ok {
		return nil, errors.New("a JSON patch is a list of operations")
	}
	operations := make([]operation, len(list))
	for i, each := range list {
		converted, err := operationDown(down{n}, fields, each)
		if err != nil {
			return nil, fmt.Errorf("operation %d of the %s: %w", i, types.JSONPatchType, err)
		}
		operations[i] = converted
	}
	return json.Marshal(operations)
}

// operationDown converts an operation. Only what is known is forwarded.
func operationDown(d down, fields *kinds.Field, parsed any) (operation, error) {
	object, _ := parsed.(Object)
	op, _ := object["op"].(string)
	path, ok := object["path"].(string)
	if !ok {
		return operation{}, errors.New("it has no path")
	}
	out := operation{Op: op, Path: path}
	switch op {
	case "add", "replace", "test":
		value, given := object["value"]
		if !given {
			return operation{}, errors.New("it has no value")
		}
		return valueDown(d, fields, out, value)
	case "remove":
		return valueDown(d, fields, out, nil)
	case "copy", "move":
		from, _ := object["from"].(string)
		out.From = &from
		return out, refuseNames(fields, from, path)
	}
	return operation{}, fmt.Errorf("%q is no operation", op)
}

// refuseNames refuses to copy fields that hold names: a copy would show the
// names of the super cluster.
func refuseNames(fields *kinds.Field, paths ...string) error {
	for _, path := range paths {
		found, err := find(fields, path)
		if err != nil {
			return err
		}
		if found.field != nil {
			return fmt.Errorf("%s holds names: add and remove it, instead of copying or moving it", path)
		}
	}
	return nil
}

// valueDown converts the value of an operation by the rules of the field at its
// path; nil if it has no value.
func valueDown(d down, fields *kinds.Field, out operation, value any) (operation, error) {
	found, err := find(fields, out.Path)
	if err != nil {
		return operation{}, err
	}
	switch {
	case len(found.rest) > 0 && isLabels(found.field.Rule.Means) && len(found.rest) == 1:
		out.Path, value, err = labelDown(d, found, value)
	case len(found.rest) > 0:
		err = errors.New("the field holds names: replace it as a whole")
	case found.field != nil && value != nil:
		value, err = d.walker().walk(value, found.field)
	}
	if err != nil {
		return operation{}, at(out.Path, err)
	}
	if out.Op != "remove" {
		out.Value = &value
	}
	return out, nil
}

func isLabels(means kinds.Means) bool {
	return means == kinds.Labels || means == kinds.NamespaceLabels
}

// labelDown converts an operation on one label or annotation.
func labelDown(d down, found place, value any) (path string, converted any, err error) {
	keys := plainKeys
	if found.field.Rule.Means == kinds.NamespaceLabels {
		keys = namespaceKeys
	}
	key := found.rest[0]
	super := keys.super(key)
	if super == "" {
		return "", nil, errReserved
	}
	converted, err = d.labelValue(keys, key, value)
	return found.at + "/" + escaper.Replace(super), converted, err
}

// place is where a JSON pointer leads in the tree of rules.
type place struct {
	// field is nil if the rules say nothing of the place.
	field *kinds.Field
	// at is the pointer to the field, and rest are the steps below it, if the field
	// has a rule as a whole.
	at   string
	rest []string
}

// The escapes in the steps of a JSON pointer (RFC 6901).
var (
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
)

// find follows a JSON pointer in the tree of rules.
func find(fields *kinds.Field, pointer string) (place, error) {
	if pointer == "" {
		return place{field: fields}, nil
	}
	if !strings.HasPrefix(pointer, "/") {
		return place{}, fmt.Errorf("the path %q does not begin with a slash", pointer)
	}
	steps := strings.Split(pointer[1:], "/")
	if slices.Contains(steps, "") {
		return place{}, fmt.Errorf("the path %q has an empty step, which readers understand differently", pointer)
	}
	for i, step := range steps {
		if fields.Rule.Means != "" {
			return place{field: fields, at: "/" + strings.Join(steps[:i], "/"), rest: unescape(steps[i:])}, nil
		}
		next := fields.Items
		if next == nil {
			next = fields.Fields[unescaper.Replace(step)]
		}
		if next == nil {
			return place{}, nil
		}
		fields = next
	}
	return place{field: fields}, nil
}

func unescape(steps []string) []string {
	out := make([]string, len(steps))
	for i, step := range steps {
		out[i] = unescaper.Replace(step)
	}
	return out
}
