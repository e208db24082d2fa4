package document

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// The fields of a label selector.
const (
	matchLabels      = "matchLabels"
	matchExpressions = "matchExpressions"
)

// selector converts a selector of namespaces, and narrows it to those of the
// tenant.
func (d down) selector(value any) (any, error) {
	selector, ok := value.(Object)
	if !ok {
		return nil, errShape
	}
	labels, err := d.labels(orEmpty(selector[matchLabels]), namespaceKeys)
	if err != nil {
		return nil, at(matchLabels, err)
	}
	labels.(Object)[names.Converted] = d.Key
	selector[matchLabels] = labels
	if expressions := selector[matchExpressions]; expressions != nil {
		if err := d.expressions(expressions); err != nil {
			return nil, at(matchExpressions, err)
		}
	}
	return selector, nil
}

func orEmpty(value any) any {
	if value == nil {
		return Object{}
	}
	return value
}

func (d down) expressions(value any) error {
	return eachExpression(value, func(expression Object, key string) error {
		super := namespaceKeys.super(key)
		if super == "" {
			return at(key, errReserved)
		}
		expression["key"] = super
		if key != corev1.LabelMetadataName {
			return nil
		}
		return eachValue(expression, d.namespace)
	})
}

// selector undoes the conversion of a selector of namespaces.
func (u up) selector(value any) any {
	selector, ok := value.(Object)
	if !ok {
		return value
	}
	if labels := u.labels(selector[matchLabels], namespaceKeys); labels == absent {
		delete(selector, matchLabels)
	} else if labels != nil {
		selector[matchLabels] = labels
	}
	_ = eachExpression(selector[matchExpressions], func(expression Object, key string) error {
		expression["key"] = namespaceKeys.tenant(key)
		if key != corev1.LabelMetadataName {
			return nil
		}
		return eachValue(expression, func(value any) (any, error) { return u.referred(value), nil })
	})
	return selector
}

// eachExpression calls a function for all expressions of a selector.
func eachExpression(value any, do func(expression Object, key string) error) error {
	expressions, ok := value.([]any)
	if !ok {
		return errShape
	}
	for _, each := range expressions {
		expression, ok := each.(Object)
		key, named := expression["key"].(string)
		if !ok || !named {
			return errShape
		}
		if err := do(expression, key); err != nil {
			return err
		}
	}
	return nil
}

// eachValue replaces all values of an expression.
func eachValue(expression Object, convert func(any) (any, error)) error {
	values, ok := expression["values"].([]any)
	if !ok {
		return nil // Exists and DoesNotExist have none
	}
	for i, value := range values {
		converted, err := convert(value)
		if err != nil {
			return err
		}
		values[i] = converted
	}
	return nil
}
