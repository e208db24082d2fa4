package expression

import (
	"fmt"
	"regexp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/stdlib"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// The cost of a call is known when the call has ended. That is soon enough for
// functions whose work grows with their arguments, since those were paid for.
// It is too late for functions whose work grows with the product of their
// arguments, or with a number among them. Those are bounded before they begin.

// priced are these functions except matches.
var priced = []string{
	"indexOf", "lastIndexOf", "replace", "join", "format", "sets.contains", "sets.equivalent", "sets.intersects", distinct, numbers,
}

const (
	distinct = "distinct"
	numbers  = "lists.range"
)

// boundedFunctions redefines functions of an environment, and those that were
// left out of its standard library.
func boundedFunctions(env *cel.Env) ([]cel.EnvOption, error) {
	var options []cel.EnvOption
	for _, function := range stdlib.Functions() {
		switch function.Name() {
		case operators.Add:
			options = append(options, redefine(function, decls.SingletonBinaryBinding(add, traits.AdderType)))
		case overloads.Matches:
			options = append(options, redefine(function, decls.SingletonBinaryBinding(matches, traits.MatcherType)))
		}
	}
	for _, name := range priced {
		bound, err := bounded(env.Functions()[name])
		if err != nil {
			return nil, err
		}
		options = append(options, bound)
	}
	return options, nil
}

// redefine gives all signatures of a function one meaning.
func redefine(function *decls.FunctionDecl, meaning cel.FunctionOpt) cel.EnvOption {
	overloads := function.OverloadDecls()
	options := append(make([]cel.FunctionOpt, 0, len(overloads)+1), meaning)
	for _, overload := range overloads {
		options = append(options, signature(overload))
	}
	return cel.Function(function.Name(), options...)
}

// bounded puts a bound before each signature of a function.
func bounded(function *decls.FunctionDecl) (cel.EnvOption, error) {
	bindings, err := function.Bindings()
	if err != nil {
		return nil, err
	}
	meanings := map[string]functions.FunctionOp{}
	for _, binding := range bindings {
		meanings[binding.Operator] = variadic(binding)
	}
	var options []cel.FunctionOpt
	for _, overload := range function.OverloadDecls() {
		meaning, there := meanings[overload.ID()]
		if !there {
			return nil, fmt.Errorf("%s has no meaning of its own", overload.ID())
		}
		options = append(options, signature(overload, cel.FunctionBinding(before(function.Name(), meaning))))
	}
	return cel.Function(function.Name(), options...), nil
}

// signature declares a signature as it was declared before.
func signature(overload *decls.OverloadDecl, options ...cel.OverloadOpt) cel.FunctionOpt {
	if overload.IsMemberFunction() {
		return cel.MemberOverload(overload.ID(), overload.ArgTypes(), overload.ResultType(), options...)
	}
	return cel.Overload(overload.ID(), overload.ArgTypes(), overload.ResultType(), options...)
}

// variadic is the meaning of a signature in one form.
func variadic(binding *functions.Overload) functions.FunctionOp {
	switch {
	case binding.Function != nil:
		return binding.Function
	case binding.Binary != nil:
		return func(args ...ref.Val) ref.Val { return binding.Binary(args[0], args[1]) }
	default:
		return func(args ...ref.Val) ref.Val { return binding.Unary(args[0]) }
	}
}

// longPrecision is a precision in a format that no number needs, and that makes
// a long string of a short one.
var longPrecision = regexp.MustCompile(`%\.\d{3}`)

// before calls a function if its arguments are within bounds.
func before(name string, meaning functions.FunctionOp) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		if price(name, args) > maxCost {
			return types.WrapErr(errCost)
		}
		if format, isText := args[0].(types.String); isText && longPrecision.MatchString(string(format)) {
			return types.NewErr("a format has a precision of at most 99")
		}
		return meaning(args...)
	}
}

// matches a text with a regular expression.
func matches(text, pattern ref.Val) ref.Val {
	if price(overloads.Matches, []ref.Val{text, pattern}) > maxCost {
		return types.WrapErr(errCost)
	}
	return text.(traits.Matcher).Match(pattern)
}

// add adds two values. A sum of lists becomes a list of its own: cel-go's is a
// tree, and to read it takes the more time the more often it was added to.
func add(a, b ref.Val) ref.Val {
	sum := a.(traits.Adder).Add(b)
	list, isList := sum.(traits.Lister)
	if _, grows := sum.(traits.MutableLister); !isList || grows {
		return sum
	}
	elements := []ref.Val{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, it.Next())
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements)
}
