package document

import (
	"bytes"
	"encoding/json"
	"errors"

	kjson "sigs.k8s.io/json"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// apiVersion is the field of the group and version of a type.
const apiVersion = "apiVersion"

// splicer converts the text of one object: it copies all but the values of
// fields with rules. It does what a walker does with up.
type splicer struct {
	*cursor
	up

	out []byte
}

// splice appends the converted text of the object that is next.
func (r *Response) splice(out []byte, c *cursor) []byte {
	s := r.splicer(out, c, "metadata", r.namespaceField())
	s.field(r.Fields)
	return s.out
}

// splicer returns what converts the object that is next, whose namespace is at a
// path of members.
func (r *Response) splicer(out []byte, c *cursor, namespaceAt ...string) *splicer {
	var namespace any
	if r.Namespace == "" { // the request does not tell
		namespace = textOf(c.ahead(namespaceAt...))
	}
	u, err := r.upOf(namespace)
	if err != nil {
		c.fail(err)
	}
	return &splicer{cursor: c, up: u, out: out}
}

// textOf returns what a JSON string says, or nil if the value is not one.
func textOf(value []byte) any {
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	return string(unquoted(value))
}

// field converts a value in place of the next one. It reports false, and writes
// nothing, if the field is to be removed.
func (s *splicer) field(field *kinds.Field) bool {
	b := s.peek()
	switch {
	case field == nil, b == 'n': // null
		s.copy()
	case field.Rule.Means != "":
		return s.rule(field.Rule, b)
	case field.Items != nil && b == '[':
		s.list(func() { s.item(field.Items) })
	case field.Items == nil && b == '{':
		s.object(func(name []byte) bool { return s.field(below(field, name)) })
	default:
		s.copy()
	}
	return true
}

// below returns the rules of a member, as fieldOf does.
func below(field *kinds.Field, name []byte) *kinds.Field {
	if len(name) > 0 && name[0] == '$' {
		return fieldOf(field, string(name))
	}
	return field.Fields[string(name)]
}

// copy copies a value.
func (s *splicer) copy() { s.out = append(s.out, s.value()...) }

// item converts an element of a list, which cannot be removed.
func (s *splicer) item(field *kinds.Field) {
	if !s.field(field) {
		s.fail(errShape)
	}
}

// list converts the elements of a list by a function.
func (s *splicer) list(item func()) {
	s.take('[')
	s.out = append(s.out, '[')
	for first := true; s.next(first, ']'); first = false {
		if !first {
			s.out = append(s.out, ',')
		}
		item()
	}
	s.out = append(s.out, ']')
}

// object converts the members of an object by a function, which writes the value
// of a member or reports false if the member is to be removed. It returns the
// number of those that are left.
func (s *splicer) object(member func(name []byte) bool) (left int) {
	s.take('{')
	s.out = append(s.out, '{')
	for first := true; s.next(first, '}'); first = false {
		before := len(s.out)
		if left > 0 {
			s.out = append(s.out, ',')
		}
		s.peek()
		start := s.at
		name := s.name()
		s.out = append(s.out, s.data[start:s.at]...)
		if left++; !member(name) {
			s.out = s.out[:before]
			left--
		}
	}
	s.out = append(s.out, '}')
	return left
}

// rule converts a value that begins with a byte. What most objects have is
// spliced; all else is decoded.
func (s *splicer) rule(rule kinds.Rule, b byte) bool {
	switch {
	case b == '"':
		return s.string(rule)
	case b == '{' && rule.Means == kinds.Labels:
		return s.try(rule, func() bool { return s.labels(plainKeys) })
	case b == '{' && rule.Means == kinds.NamespaceLabels:
		return s.try(rule, func() bool { return s.labels(namespaceKeys) })
	case b == '{' && (rule.Means == kinds.Owner || rule.Means == kinds.RootOwner):
		return s.try(rule, s.ownerOf)
	case b == '[' && rule.Means == kinds.ManagedFields:
		return s.try(rule, func() bool { return s.managers(rule, plainKeys, false) })
	case b == '[' && rule.Means == kinds.ManagedNamespaceFields:
		return s.try(rule, func() bool { return s.managers(rule, namespaceKeys, true) })
	case rule.Means == kinds.Hidden, rule.Means == kinds.RootNamespace:
		s.value()
		return false
	}
	return s.decoded(rule)
}

// errDecode is that a value cannot be spliced.
var errDecode = errors.New("the value is to be decoded")

// try splices a value, or decodes it if that fails.
func (s *splicer) try(rule kinds.Rule, splice func() bool) bool {
	start, from, before := s.at, s.from, len(s.out)
	kept := splice()
	if !errors.Is(s.err, errDecode) {
		return kept
	}
	s.at, s.from, s.err, s.out = start, from, nil, s.out[:before]
	return s.decoded(rule)
}

// string converts a string.
func (s *splicer) string(rule kinds.Rule) bool {
	quoted := s.value()
	if s.err != nil {
		return true
	}
	before := textOf(quoted)
	after, err := s.turn(rule, before)
	if after == before && err == nil {
		s.out = append(s.out, quoted...)
		return true
	}
	return s.write(after, err)
}

// decoded converts a value as part of a tree.
func (s *splicer) decoded(rule kinds.Rule) bool {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(s.value(), &value); err != nil {
		s.fail(err)
		return true
	}
	return s.write(s.turn(rule, value))
}

// write writes a value that was converted.
func (s *splicer) write(value any, err error) bool {
	if value == absent {
		return false
	}
	if err == nil {
		var data []byte
		data, err = json.Marshal(value)
		s.out = append(s.out, data...)
	}
	if err != nil {
		s.fail(err)
	}
	return true
}

// labels splices labels or annotations, all of which keep their keys or are
// removed.
func (s *splicer) labels(keys keys) bool {
	all := 0
	left := s.object(func(name []byte) bool {
		all++
		if keys.named != "" && string(name) == keys.named {
			s.fail(errDecode)
		}
		return s.key(name, keys)
	})
	return left > 0 || all == 0
}

// key copies the value of a label if it is the tenant's.
func (s *splicer) key(name []byte, keys keys) bool {
	key := string(name)
	tenant := keys.tenant(key)
	if tenant != "" && tenant != key {
		s.fail(errDecode)
	}
	s.copy()
	return tenant != ""
}

// ownerOf copies an owner reference that owner does not change.
func (s *splicer) ownerOf() bool {
	reference := s.value()
	version, _ := textOf(lookup(reference, apiVersion)).(string)
	kind, _ := textOf(lookup(reference, "kind")).(string)
	if s.convertsOwner(version, kind) {
		s.fail(errDecode)
	}
	s.out = append(s.out, reference...)
	return true
}

// managers splices managedFields.
func (s *splicer) managers(rule kinds.Rule, keys keys, hidesOwners bool) bool {
	s.list(func() {
		if s.peek() != '{' {
			s.copy()
			return
		}
		s.object(func(name []byte) bool {
			switch b := s.peek(); {
			case string(name) == apiVersion && b == '"':
				return s.managerVersion(rule)
			case string(name) == "fieldsV1" && b == '{':
				s.object(func(name []byte) bool { return s.managed(name, keys, hidesOwners) })
			default:
				s.copy()
			}
			return true
		})
	})
	return true
}

// managerVersion converts the API version of a manager.
func (s *splicer) managerVersion(rule kinds.Rule) bool {
	return s.write(replaced(s.apiVersion(textOf(s.value())), rule.Super, rule.Tenant), nil)
}

// managed splices a managed field: of metadata, those that are the tenant's.
func (s *splicer) managed(name []byte, keys keys, hidesOwners bool) bool {
	if string(name) != "f:metadata" || s.peek() != '{' {
		s.copy()
		return true
	}
	return s.object(func(name []byte) bool {
		isObject := s.peek() == '{'
		switch {
		case string(name) == "f:labels" && isObject:
			return s.object(func(name []byte) bool { return s.managedKey(name, keys) }) > 0
		case string(name) == "f:annotations" && isObject:
			return s.object(func(name []byte) bool { return s.managedKey(name, plainKeys) }) > 0
		}
		s.copy()
		return string(name) != "f:ownerReferences" || !hidesOwners
	}) > 0
}

// managedKey splices a managed label.
func (s *splicer) managedKey(name []byte, keys keys) bool {
	key, isField := bytes.CutPrefix(name, []byte(managedField))
	if !isField {
		s.copy()
		return true
	}
	return s.key(key, keys)
}
