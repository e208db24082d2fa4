package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// last is the part of a JSON Pointer for the element after the last of a list.
const last = "-"

// parsePointer splits a JSON Pointer (RFC 6901) into its parts. It rejects the
// empty pointer, which is the whole object.
func parsePointer(text string) ([]string, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, errors.New("path must begin with /")
	}
	parts := strings.Split(text[1:], "/")
	for i, part := range parts {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(part)
		if strings.Contains(rest, "~") {
			return nil, errors.New("path must escape ~ as ~0 and / as ~1")
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts, nil
}

// put sets the value at a path below node, and returns the node, which is new
// if it was nil or a list that grew. It creates missing parents: objects or,
// where the path appends to them, lists.
func put(node any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch node := node.(type) {
	case nil:
		if path[0] == last {
			return put([]any{}, path, value)
		}
		return put(map[string]any{}, path, value)
	case map[string]any:
		child, err := put(node[path[0]], path[1:], value)
		if err != nil {
			return nil, err
		}
		node[path[0]] = child
		return node, nil
	case []any:
		return putElement(node, path, value)
	default:
		return nil, fmt.Errorf("%q cannot be set in %s", path[0], describe(node))
	}
}

// putElement is put for a list.
func putElement(list []any, path []string, value any) (any, error) {
	if path[0] == last {
		child, err := put(nil, path[1:], value)
		return append(list, child), err
	}
	i, err := index(path[0])
	if err != nil {
		return nil, err
	}
	if i >= len(list) {
		return nil, fmt.Errorf("no element %d in a list of %d; use - to append one", i, len(list))
	}
	child, err := put(list[i], path[1:], value)
	list[i] = child
	return list, err
}

// remove deletes the value at a path below node, if there is one, and returns
// the node, which is new if it was a list.
func remove(node any, path []string) (any, error) {
	switch node := node.(type) {
	case map[string]any:
		child, there := node[path[0]]
		if !there {
			return node, nil
		}
		if len(path) == 1 {
			delete(node, path[0])
			return node, nil
		}
		child, err := remove(child, path[1:])
		node[path[0]] = child
		return node, err
	case []any:
		return removeElement(node, path)
	default:
		return node, nil
	}
}

// removeElement is remove for a list.
func removeElement(list []any, path []string) (any, error) {
	if path[0] == last {
		return list, nil
	}
	i, err := index(path[0])
	if err != nil || i >= len(list) {
		return list, err
	}
	if len(path) == 1 {
		return slices.Delete(list, i, i+1), nil
	}
	list[i], err = remove(list[i], path[1:])
	return list, err
}

// index parses the index of an element.
func index(part string) (int, error) {
	i, err := strconv.ParseUint(part, 10, 31)
	if err != nil || strconv.FormatUint(i, 10) != part {
		return 0, fmt.Errorf("%q is not an index of a list", part)
	}
	return int(i), nil
}

// describe names the type of a JSON value that cannot hold others.
func describe(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
