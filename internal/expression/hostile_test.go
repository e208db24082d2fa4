package expression

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// evaluate compiles an expression and evaluates it for a pod.
func evaluate(ctx context.Context, t *testing.T, source string) (any, error) {
	t.Helper()
	env, err := NewEnvironment(cel.Variable("object", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	e, err := Compile(env, source)
	if err != nil {
		return nil, err
	}
	value, err := e.Evaluate(ctx, map[string]any{"object": map[string]any{
		"metadata": map[string]any{"name": "web-0", "labels": map[string]any{"app": "web", "tier": "gold"}},
		"spec": map[string]any{"serviceAccountName": "default", "containers": []any{map[string]any{
			"name": "web", "image": "web:1", "ports": []any{map[string]any{"containerPort": int64(80)}},
			"resources": map[string]any{"requests": map[string]any{"cpu": "100m"}},
		}}},
	}}, &Budget{})
	if err != nil {
		return nil, err
	}
	return value.Value(), nil
}

// list is a list of n times an element.
func list(element string, n int) string {
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}

// hostile are expressions that would not end, or would take all memory, if
// nothing stopped them, with what stops them; those that end by themselves have
// none.
func hostile() map[string]struct{ expression, want string } {
	const tooMany = "the expression takes too many steps"
	ten := "[0,1,2,3,4,5,6,7,8,9]"
	text := "'" + strings.Repeat("x", 2000) + "'"
	again := strings.Repeat
	return map[string]struct{ expression, want string }{
		"loops in loops":      {again(ten+".all(x, ", 8) + "true" + again(")", 8), tooMany},
		"a long loop":         {"lists.range(80000).all(x, x >= 0)", tooMany},
		"too many loops":      {"[1]" + again(".map(x, {x: x})", 100), "it has 100 loops"},
		"trees of lists":      {"[[0]]" + again(".map(a, "+list("a", 20)+")", 6) + ".map(a, a == a)", tooMany},
		"trees of maps":       {"{'a': [0]}" + again(".transformMap(k, v, "+list("v", 20)+")", 6) + " == {}", tooMany},
		"trees of optionals":  {"[optional.of([0])]" + again(".map(a, optional.of("+list("a", 20)+"))", 6), tooMany},
		"flattened trees":     {"[[0]]" + again(".map(a, "+list("a", 20)+")", 6) + ".map(a, a.flatten(100))", tooMany},
		"sums of lists":       {"[[0,1,2,3]]" + again(".map(a, a"+again("+a", 60)+")", 4) + ".map(a, a == a)", tooMany},
		"sums of empty lists": {"[[]]" + again(".map(a, a"+again("+a", 60)+")", 7) + ".size() == 1", ""},
		"sums of texts":       {"[" + text + "]" + again(".map(a, a"+again("+a", 60)+")", 4), tooMany},
		"replace":             {"[" + text + "]" + again(".map(a, a.replace('', a))", 4), tooMany},
		"join":                {"[" + text + "]" + again(".map(a, a.split('').join(a))", 4), tooMany},
		"format":              {"[" + text + "]" + again(".map(a, '"+again("%s", 200)+"'.format("+list("a", 200)+"))", 2), tooMany},
		"precision":           {"'%.9999999f'.format([1.0])", "precision of at most 99"},
		"indexOf":             {"[" + text + ".replace('', 'xxxxxxxxxxxxxxxx')].map(a, (a + a).indexOf(a + 'y'))", tooMany},
		"matches":             {"[" + text + ".replace('', 'xxxx')].map(a, a.matches(a))", tooMany},
		"matches repeated":    {text + ".matches('" + again("(x*){999}", 20) + "y')", tooMany},
		"matches nested":      {text + ".matches('((x*){30,31}y*){31}y')", tooMany},
		"sets":                {text + ".split('').map(b, b + 'x').map(b, [b]).exists(b, sets.contains(" + text + ".split(''), b))", tooMany},
		"large values":        {list(list("object", 30), 18) + ".map(a, " + list("a", 100) + ")", tooMany},
		"a large literal":     {"[[object]].map(a, " + list("a", 50) + ").map(a, " + list(list("a", 30), 30) + ")[0]", tooMany},
		"deep":                {again("[", 1000) + again("]", 1000), "recursion"},
		"optMap":              {"object.?spec" + again(".optMap(x, x)", 200), "undeclared reference"},
		"bind":                {"cel.bind(a, [1], a)", "undeclared reference"},
		"sortBy":              {"[1].sortBy(x, x)", "undeclared reference"},
		"range":               {"lists.range(1000000000)", tooMany},
		"ranges":              {"lists.range(1000).map(a, lists.range(1000))", tooMany},
		"distinct of many":    {"[lists.range(5000).map(a, [a])].map(a, a.distinct()).map(a, a.distinct())", tooMany},
		"sets of trees":       {"[" + list("object", 30) + "].map(a, lists.range(100000).all(i, sets.contains([a], [a])))", tooMany},
	}
}

// TestHostileExpressionsEnd: whatever is written into an expression, it ends soon.
func TestHostileExpressionsEnd(t *testing.T) {
	for name, tc := range hostile() {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := evaluate(t.Context(), t, tc.expression)
			took := time.Since(began)
			t.Logf("%s: %v", name, took)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got error %.300v, want %q", err, tc.want)
			}
			if took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestContextEndsAnExpression(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	loop := "[0,1,2,3,4,5,6,7,8,9].all(x, [0,1,2,3,4,5,6,7,8,9].all(y, [0,1,2,3,4,5,6,7,8,9].all(z, true)))"
	if value, err := evaluate(t.Context(), t, loop); err != nil || value != true {
		t.Fatalf("got %v, %v", value, err)
	}
	// cel-go says that it was interrupted, and not by what.
	if value, err := evaluate(ctx, t, loop); err == nil {
		t.Errorf("got %v though the context has ended", value)
	}
}

// TestBudget: what is left of it is less with every expression.
func TestBudget(t *testing.T) {
	env, err := NewEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Compile(env, "('"+strings.Repeat("x", 90_000)+"' + 'y').size() > 0")
	if err != nil {
		t.Fatal(err)
	}
	budget := &Budget{}
	for range maxCostOfAll / 1000 {
		if _, err = e.Evaluate(t.Context(), map[string]any{}, budget); err != nil {
			break
		}
	}
	if !errors.Is(err, errCost) {
		t.Errorf("got %v", err)
	}
}

func TestCondition(t *testing.T) {
	env, err := NewEnvironment(cel.Variable("x", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"x == 1":       "true",
		"x == 2":       "false",
		"x.y":          "no such key: y",
		"x":            "it gives int and not bool",
		"'true'":       "it gives string and not bool",
		"1 / 0 == 1":   "division by zero",
		"x ==":         "at 1:5: Syntax error",
		"true &&\n  y": "at 2:3: undeclared reference to 'y'",
	} {
		t.Run(source, func(t *testing.T) {
			got := types.String("")
			c, err := CompileCondition(env, source)
			if err == nil {
				var holds bool
				holds, err = c.Holds(t.Context(), map[string]any{"x": 1}, &Budget{})
				got = types.Bool(holds).ConvertToType(types.StringType).(types.String)
			}
			if err != nil {
				got = types.String(err.Error())
			}
			if !strings.HasPrefix(string(got), want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
