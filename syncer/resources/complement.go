package resources

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// opposites are the operators that select what others do not.
var opposites = map[metav1.LabelSelectorOperator]metav1.LabelSelectorOperator{
	metav1.LabelSelectorOpIn:           metav1.LabelSelectorOpNotIn,
	metav1.LabelSelectorOpNotIn:        metav1.LabelSelectorOpIn,
	metav1.LabelSelectorOpExists:       metav1.LabelSelectorOpDoesNotExist,
	metav1.LabelSelectorOpDoesNotExist: metav1.LabelSelectorOpExists,
}

// term is the requirements of one selector.
type term []metav1.LabelSelectorRequirement

// complement returns selectors that together select what none of the given ones
// selects. If more than a maximum are needed, it returns none: they would select
// too little, and the caller admits traffic to what they select.
func complement(selectors []*metav1.LabelSelector, most int) []metav1.LabelSelector {
	terms := []term{nil} // of no selectors: everything
	for _, selector := range selectors {
		var next []term
		for _, each := range terms {
			for _, requirement := range negations(selector) {
				next = addTerm(next, each.with(requirement))
			}
		}
		if terms = next; len(terms) > most {
			return nil
		}
	}
	complements := make([]metav1.LabelSelector, len(terms))
	for i, each := range terms {
		complements[i].MatchExpressions = each
	}
	return complements
}

// negations returns requirements of which one is met by each object that a
// selector does not select.
func negations(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	all := make([]metav1.LabelSelectorRequirement, 0, len(selector.MatchLabels)+len(selector.MatchExpressions))
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		all = append(all, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{selector.MatchLabels[key]},
		})
	}
	for _, e := range selector.MatchExpressions {
		e.Operator, e.Values = opposites[e.Operator], slices.Sorted(slices.Values(e.Values))
		all = append(all, e)
	}
	return all
}

// with returns a term with one more requirement.
func (t term) with(r metav1.LabelSelectorRequirement) term {
	merged := slices.Clone(t)
	for i, have := range merged {
		switch {
		case implies(have, r):
			return merged
		case have.Key == r.Key && have.Operator == r.Operator && r.Operator == metav1.LabelSelectorOpNotIn:
			values := slices.Concat(have.Values, r.Values)
			slices.Sort(values)
			merged[i].Values = slices.Compact(values)
			return merged
		}
	}
	return append(merged, r)
}

// addTerm adds a term to those that together select something, without any that
// another one makes superfluous.
func addTerm(terms []term, t term) []term {
	if slices.ContainsFunc(terms, t.implies) {
		return terms
	}
	return append(slices.DeleteFunc(terms, func(have term) bool { return have.implies(t) }), t)
}

// implies reports whether what meets the term meets another one.
func (t term) implies(other term) bool {
	return !slices.ContainsFunc(other, func(r metav1.LabelSelectorRequirement) bool {
		return !slices.ContainsFunc(t, func(have metav1.LabelSelectorRequirement) bool { return implies(have, r) })
	})
}

// implies reports whether what meets a requirement meets another one, as far as
// both have the same operator.
func implies(have, other metav1.LabelSelectorRequirement) bool {
	if have.Key != other.Key || have.Operator != other.Operator {
		return false
	}
	subset, of := other.Values, have.Values // NotIn
	if have.Operator == metav1.LabelSelectorOpIn {
		subset, of = have.Values, other.Values
	}
	return !slices.ContainsFunc(subset, func(value string) bool { return !slices.Contains(of, value) })
}
