package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// walker converts the fields of documents that have rules.
type walker struct {
	// turn returns the converted value of a field, or absent if the field is to be
	// removed.
	turn func(rule kinds.Rule, value any) (any, error)
	// strict refuses a value of another type than the rules expect: it would not
	// be converted, and another reader could understand it.
	strict bool
}

// absent is the value of a field that is to be removed.
var absent any = new(struct{ removed bool })

// errShape is a value of another type than the field has.
var errShape = errors.New("the value has another type than the field")

// walk converts a value in place, and returns it.
func (w walker) walk(value any, field *kinds.Field) (any, error) {
	switch {
	case value == nil:
		return nil, nil
	case field.Rule.Means != "":
		return w.turn(field.Rule, value)
	case field.Items != nil:
		return w.list(value, field.Items)
	}
	return w.object(value, field)
}

func (w walker) object(value any, field *kinds.Field) (any, error) {
	object, ok := value.(Object)
	if !ok {
		return value, w.misshapen()
	}
	for name, child := range object {
		below := fieldOf(field, name)
		if below == nil {
			continue
		}
		turned, err := w.walk(child, below)
		switch {
		case err != nil:
			return nil, at(name, err)
		case turned == absent:
			delete(object, name)
		default:
			object[name] = turned
		}
	}
	return object, nil
}

func (w walker) list(value any, items *kinds.Field) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return value, w.misshapen()
	}
	for i, item := range list {
		turned, err := w.walk(item, items)
		if err != nil {
			return nil, at(strconv.Itoa(i), err)
		}
		list[i] = turned
	}
	return list, nil
}

func (w walker) misshapen() error {
	if w.strict {
		return errShape
	}
	return nil
}

// The directives of strategic merge patches that hold values of another field.
var directives = []string{"$setElementOrder/", "$deleteFromPrimitiveList/"}

// fieldOf returns the rules of a field, also of a directive that holds values
// of the field; nil if it has none.
func fieldOf(field *kinds.Field, name string) *kinds.Field {
	if strings.HasPrefix(name, "$") {
		for _, directive := range directives {
			name = strings.TrimPrefix(name, directive)
		}
	}
	return field.Fields[name]
}

// FieldError is an error about a field of a document.
type FieldError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// at returns an error about a field, or about one below it.
func at(name string, err error) error {
	if below, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{Path: name + "." + below.Path, Err: below.Err}
	}
	return &FieldError{Path: name, Err: err}
}
