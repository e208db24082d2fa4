package document

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// podSelector permits a selector of pods that has no requirement of the
// platform's: the super cluster adds one, which the tenant does not see.
func (d down) podSelector(value any) (any, error) {
	selector, ok := value.(Object)
	if !ok {
		return nil, errShape
	}
	if _, err := d.labels(orEmpty(selector[matchLabels]), plainKeys); err != nil {
		return nil, at(matchLabels, err)
	}
	if expressions := selector[matchExpressions]; expressions != nil {
		err := eachExpression(expressions, func(_ Object, key string) error {
			if names.Reserved(key) {
				return at(key, errReserved)
			}
			return nil
		})
		if err != nil {
			return nil, at(matchExpressions, err)
		}
	}
	return selector, nil
}

// podSelector removes the platform's requirement from a selector of pods, or
// from the text of one.
func (u up) podSelector(value any) any {
	switch selector := value.(type) {
	case string:
		return podSelectorText(selector)
	case Object:
		expressions, _ := selector[matchExpressions].([]any)
		expressions = slices.DeleteFunc(expressions, func(each any) bool {
			expression, _ := each.(Object)
			return expression["key"] == names.Converted
		})
		if selector[matchExpressions] = expressions; len(expressions) == 0 {
			delete(selector, matchExpressions)
		}
	}
	return value
}

// podSelectorText returns the text of a selector in a Table, without the
// platform's requirement.
func podSelectorText(text string) string {
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return text // such as <none>
	}
	selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == names.Converted
	})
	return metav1.FormatLabelSelector(selector)
}
