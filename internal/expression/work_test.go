package expression_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// usual is an expression as in the policies of users.
const usual = "!has(object.spec.replicas) || object.spec.replicas <= 5 && object.metadata.name.startsWith('a')"

// expensive are expressions that take a compiler long, with how often something is
// repeated in them.
var expensive = map[string]func(n int) string{
	"optMap": func(n int) string { return "optional.of(1)" + strings.Repeat(".optMap(a,a)", n) + ".hasValue()" },
	"optFlatMap": func(n int) string {
		return "optional.of(1)" + strings.Repeat(".optFlatMap(a,optional.of(a))", n) + ".hasValue()"
	},
	"types of maps":       func(n int) string { return "[1]" + strings.Repeat(".map(a,{a:a})", n) + ".size()>0" },
	"types of lists":      func(n int) string { return strings.Repeat("[[1].map(a,", n) + "1" + strings.Repeat(")]", n) + "==[]" },
	"literal maps":        func(n int) string { return "[" + strings.Repeat("{},", n) + "{}].size()>0" },
	"literal lists":       func(n int) string { return "[" + strings.Repeat("[],", n) + "[]].size()>0" },
	"comparisons":         func(n int) string { return strings.Repeat("1==1||", n) + "true" },
	"disjunctions":        func(n int) string { return strings.Repeat("true||", n) + "true" },
	"loops":               func(n int) string { return strings.Repeat("[].all(a,true)||", n) + "true" },
	"a repeated pattern":  func(n int) string { return "''.matches('(" + strings.Repeat("a", n) + "){1000}')" },
	"classes":             func(n int) string { return `''.matches('` + strings.Repeat(`\\pL`, n) + `')` },
	"classes of any case": func(n int) string { return `''.matches('(?i)` + strings.Repeat(`[\\x{100}-\\x{1e943}]`, n) + `')` },
	"errors of types":     func(n int) string { return strings.Repeat("1+'a'==1||", n) + "true" },
	"errors of syntax":    func(n int) string { return strings.Repeat(`'\p`, n) },
}

func TestWorkOfExpensiveExpressions(t *testing.T) {
	for name, repeated := range map[string]struct{ within, beyond int }{
		"optMap": {6, 8}, "optFlatMap": {5, 8}, "types of maps": {11, 14}, "types of lists": {50, 100},
		"literal maps": {1000, 2000}, "literal lists": {1000, 2000}, "comparisons": {1000, 3000}, "loops": {500, 1000},
		"a repeated pattern": {500, 2000}, "classes": {4000, 9000}, "classes of any case": {100, 500},
		"errors of types": {1000, 3000}, "errors of syntax": {20_000, 150_000},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(expression.Work(expensive[name](repeated.within))).To(BeNumerically("<=", expression.MaxWork))
			g.Expect(expression.Work(expensive[name](repeated.beyond))).To(BeNumerically(">", expression.MaxWork))
		})
	}
}

func TestWorkOfUsualExpressions(t *testing.T) {
	g := NewWithT(t)
	g.Expect(expression.Work("true")).To(BeNumerically("~", 550, 50))
	g.Expect(expression.Work(usual)).To(BeNumerically("~", 1000, 200))
	g.Expect(expression.Work(strings.Repeat(usual+" &&\n", 40) + "true")).To(BeNumerically("<", expression.MaxWork/10))
	g.Expect(expression.Work("self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')")).To(BeNumerically("<", 2000))
	g.Expect(expression.Work("object.spec.containers.map(c, {c.name: c.image}).size() > 0")).To(BeNumerically("<", 2000))
}

func TestWorkAddsUp(t *testing.T) {
	g := NewWithT(t)
	var all expression.Estimate
	all.Add(usual)
	all.AddVariable(usual)
	g.Expect(all.Work()).To(Equal(2 * expression.Work(usual)))
	all.AddPattern("(a|b){10}")
	all.AddPattern("(a|b){10}") // compiled once
	all.AddTypes(1000)
	g.Expect(all.Work() - 2*expression.Work(usual)).To(BeNumerically("~", 16_050, 50))
	for range 10_000 { // more than an integer can be
		all.AddTypes(1 << 56)
	}
	g.Expect(all.Work()).To(BeNumerically(">", 1<<62))
}

// TestWorkOfVariables: the type of each variable is twice that of the one before.
func TestWorkOfVariables(t *testing.T) {
	g := NewWithT(t)
	var all expression.Estimate
	all.AddVariable("1")
	for i := range 20 {
		all.AddVariable(fmt.Sprintf("{variables.v%d: variables.v%[1]d}", i))
		if i == 5 {
			g.Expect(all.Work()).To(BeNumerically("<", expression.MaxWork/10))
		}
	}
	g.Expect(all.Work()).To(BeNumerically(">", expression.MaxWork))
}

// FuzzWork: what compiles was counted as what compiles.
func FuzzWork(f *testing.F) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(usual)
	f.Add("a.?b[?c].orValue(A{b: [?d], ?e: {1: 2u, 'a': b'c'}}) ? -1.0 : !has(a.b)")
	f.Add("a.`b-c`.exists(x, x == \"\"\"\n\"\"\" && x != r'\\p' && null in [a % 2 - 1])")
	for _, repeated := range expensive {
		f.Add(repeated(2))
	}
	f.Fuzz(func(t *testing.T, source string) {
		work := expression.Work(source)
		if work < len(source) {
			t.Errorf("%d of work for %d bytes", work, len(source))
		}
		if work > expression.MaxWork { // it could take forever
			return
		}
		if _, issues := set.Parse(source); issues.Err() == nil && !expression.Parses(source) {
			t.Errorf("%q is an expression", source)
		}
	})
}

// BenchmarkCompile has the time to compile expressions, by their work.
func BenchmarkCompile(b *testing.B) {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err != nil {
		b.Fatal(err)
	}
	for name, repeated := range expensive {
		b.Run(name, func(b *testing.B) {
			n := 1
			for expression.Work(repeated(n+1+n/8)) <= expression.MaxWork {
				n += 1 + n/8
			}
			source := repeated(n)
			for b.Loop() {
				checked, issues := env.Compile(source)
				if issues.Err() == nil {
					_, _ = env.Program(checked)
				} else {
					_ = issues.Err().Error()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(expression.Work(source)), "µs/work")
		})
	}
}
