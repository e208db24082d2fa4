package expression

import (
	"math"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

const (
	// Usual is the work of an expression of the usual length, about a hundred
	// characters.
	Usual = 1 << 10
	// MaxWork is how much work all expressions of one API object may be: about a
	// second, or 1,000 expressions of the usual length.
	MaxWork = 1 << 10 * Usual
)

const (
	// workOfEach is the work of the shortest expression: about half a millisecond,
	// and 48 KiB that its program takes.
	workOfEach = 512
	// workOfNode is the work of each node of its syntax tree.
	workOfNode = 16
	// The type checker copies the types of all generic calls for each of them, and
	// types are as deep as calls are in each other.
	workOfGenerics = 0.2
	// A literal map has the types of its keys and of its values, and if both are
	// that of one variable, twice as large a type as it.
	workOfDoubling = 192
	// optMap and optFlatMap are expanded to twice what they are called on, and copy
	// as much beside it: what that was before its own macros were expanded.
	copiesOfTarget = 2
	copiesOfNodes  = 2 * copiesOfTarget
	// A message about an error shows its line and a mark below it, and the compiler
	// reports mostErrors.
	mostErrors   = 100
	widthOfError = 2
	bytesPerWork = 16
	// workOfType is the work of each type that is declared for a rule, about a kilobyte
	// that is kept.
	workOfType = 16
)

// Work returns how much work it is to compile an expression of an API object, of
// which a compiler cannot be stopped: about a microsecond and a hundred bytes that are
// kept, each. Of expressions that are made to be expensive it is an upper estimate. It
// does not compile them.
func Work(source string) int {
	var all Estimate
	all.Add(source)
	return all.Work()
}

// Estimate is the [Work] of the expressions of one object. The zero value is that of
// none.
type Estimate struct {
	work int
	// doublings are those in the types of variables.
	doublings float64
	// patterns are those that were added.
	patterns map[string]bool
}

// Work returns the work of all expressions.
func (e *Estimate) Work() int { return e.work }

// Add adds an expression.
func (e *Estimate) Add(source string) {
	work, _ := estimate(source, e.doublings)
	e.add(work)
}

// AddVariable adds a variable, which the expressions after it can use.
func (e *Estimate) AddVariable(source string) {
	work, doublings := estimate(source, e.doublings)
	e.add(work)
	e.doublings = doublings
}

// AddPattern adds a regular expression. Equal ones are compiled once.
func (e *Estimate) AddPattern(pattern string) {
	if pattern == "" || e.patterns[pattern] {
		return
	}
	if e.patterns == nil {
		e.patterns = map[string]bool{}
	}
	e.patterns[pattern] = true
	e.add(whole(workOfPattern(pattern)))
}

// AddObject adds what an object with expressions takes beside them.
func (e *Estimate) AddObject(work int) { e.add(work) }

// AddTypes adds types that are declared for the rules of a schema, of which each
// schema in it has one.
func (e *Estimate) AddTypes(number int) { e.add(number * workOfType) }

func (e *Estimate) add(work int) { e.work = min(e.work, math.MaxInt-work) + work }

// whole returns an estimate as an integer, which it may be too large for.
func whole(estimate float64) int {
	return int(math.Min(estimate, math.MaxInt32))
}

// estimate returns the work of an expression, and the doublings in types after it.
func estimate(source string, doublings float64) (int, float64) {
	line := 0
	for each := range strings.Lines(source) {
		line = max(line, len(each))
	}
	work, errors := float64(workOfEach+len(source)), float64(mostErrors)
	if parsed, ok := parse(source); ok {
		t := measure(parsed)
		doublings += t.doublings
		errors = math.Min(errors, t.nodes)
		work += t.nodes*workOfNode + t.generics*t.generics*math.Max(t.depth, 1)*workOfGenerics + t.pattern
		if doublings > 0 {
			work += math.Exp2(doublings) * workOfDoubling
		}
	}
	return whole(work + errors*widthOfError*float64(line)/bytesPerWork), doublings
}

// parse returns an expression before its macros are expanded. It accepts all syntax
// that some environment accepts; what is none does not compile.
func parse(source string) (ast.Expr, bool) {
	p, err := parser.NewParser(parser.EnableOptionalSyntax(true), parser.EnableIdentEscapeSyntax(true), parser.ErrorReportingLimit(1))
	if err != nil {
		return nil, false
	}
	parsed, errs := p.Parse(common.NewTextSource(source))
	if len(errs.GetErrors()) > 0 {
		return nil, false
	}
	return parsed.Expr(), true
}

// tree is the size of a syntax tree. The copies that macros make are more than an
// integer can be.
type tree struct {
	nodes float64
	// generics are the calls and literals whose types depend on others, and depth
	// how deep their types are in each other.
	generics, depth float64
	doublings       float64
	// pattern is the size of the regular expressions that its texts may be.
	pattern float64
}

// and returns a tree with another one at its side.
func (t tree) and(other tree) tree {
	return tree{
		nodes: t.nodes + other.nodes, generics: t.generics + other.generics, depth: math.Max(t.depth, other.depth),
		doublings: t.doublings + other.doublings, pattern: t.pattern + other.pattern,
	}
}

// copied returns the tree of what an optMap is called on, after its expansion.
func (t tree) copied() tree {
	return tree{
		nodes: copiesOfNodes * t.nodes, generics: copiesOfTarget * t.generics, depth: t.depth,
		doublings: copiesOfTarget * t.doublings, pattern: copiesOfTarget * t.pattern,
	}
}

// measure returns the size of an expression, all kinds of which a parser without
// macros returns.
func measure(e ast.Expr) tree {
	size := tree{nodes: 1}
	switch e.Kind() {
	case ast.CallKind:
		return size.and(measureCall(e.AsCall()))
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			size = size.and(measure(element))
		}
		return size.and(tree{generics: 1, depth: size.depth + 1})
	case ast.MapKind:
		for _, each := range e.AsMap().Entries() {
			entry := each.AsMapEntry()
			size = size.and(measure(entry.Key())).and(measure(entry.Value()))
			if entry.Key().Kind() != ast.LiteralKind {
				size.doublings++
			}
		}
		return size.and(tree{generics: 1, depth: size.depth + 1})
	case ast.StructKind:
		for _, each := range e.AsStruct().Fields() {
			size = size.and(measure(each.AsStructField().Value()))
		}
	case ast.SelectKind:
		return size.and(measure(e.AsSelect().Operand()))
	case ast.LiteralKind:
		if text, ok := e.AsLiteral().(types.String); ok {
			size.pattern = workOfPattern(string(text))
		}
	case ast.IdentKind, ast.ComprehensionKind, ast.UnspecifiedExprKind: // of which only macros make the second
	}
	return size
}

func measureCall(call ast.CallExpr) tree {
	var size tree
	if call.IsMemberFunction() {
		size = measure(call.Target())
		if name := call.FunctionName(); name == "optMap" || name == "optFlatMap" {
			size = size.copied()
		}
	}
	for _, argument := range call.Args() {
		size = size.and(measure(argument))
	}
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Negate:
		return size
	default:
		if _, isOperator := operators.FindReverse(name); !isOperator {
			size.depth++
		}
		return size.and(tree{generics: 1})
	}
}
