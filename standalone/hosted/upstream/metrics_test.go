package upstream

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/internal/cardinality"
)

// metricPackages have the functions that make metrics with labels.
var metricPackages = []string{"k8s.io/component-base/metrics", "github.com/prometheus/client_golang/prometheus"}

// makesMetrics matches the names of these functions.
var makesMetrics = regexp.MustCompile(`^New((Counter|Gauge|Histogram|Summary|TimingHistogram)Vec|Desc)$`)

// TestMetrics tests that the labels of every metric of upstream are decided in
// metrics.txt, and that package cardinality limits those whose values are
// tenants'.
func TestMetrics(t *testing.T) {
	decisions := compare(t, "metrics.txt", metricsOf(t, goList(t, "-deps", "../../cmd/...")), "absent", "fixed", "limited", "replaced")
	limits := cardinality.Limits()
	for _, entry := range decisions {
		parts := strings.Fields(entry.name)
		found := false
		for label := range strings.SplitSeq(parts[2], ",") {
			key := parts[1] + "," + label
			_, ok := limits[key]
			found = found || ok
			delete(limits, key)
		}
		if found != (entry.decision == "limited") {
			t.Errorf("%s: limited by package cardinality: %t, and %s in metrics.txt", entry.name, found, entry.decision)
		}
	}
	for key := range limits {
		t.Errorf("package cardinality limits what upstream does not have: %s", key)
	}
}

// metricsOf returns a "file name label,label" for each metric with labels that
// packages make.
func metricsOf(t *testing.T, packages []goPackage) []string {
	t.Helper()
	known := newConstants(packages)
	var found []string
	for _, pkg := range packages {
		if slices.Contains(metricPackages, pkg.ImportPath) || strings.HasPrefix(pkg.ImportPath, "github.com/virtualcluster/") {
			continue
		}
		for _, name := range pkg.GoFiles {
			file, err := metricFile(pkg, name)
			if err != nil {
				t.Fatal(err)
			}
			if file == nil {
				continue
			}
			for _, metric := range known.metricsIn(pkg.ImportPath, file) {
				found = append(found, pkg.ImportPath+"/"+name+" "+metric)
			}
		}
	}
	return found
}

// constants resolves the names of strings in packages.
type constants struct {
	packages map[string]goPackage
	// values has the strings of packages, by their import paths and names.
	values map[string]map[string]ast.Expr
}

func newConstants(packages []goPackage) *constants {
	c := &constants{packages: map[string]goPackage{}, values: map[string]map[string]ast.Expr{}}
	for _, pkg := range packages {
		c.packages[pkg.ImportPath] = pkg
	}
	return c
}

// metricFile parses a file if it may make metrics.
func metricFile(pkg goPackage, name string) (*ast.File, error) {
	path := filepath.Join(pkg.Dir, name)
	source, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(source, []byte("Vec(")) && !bytes.Contains(source, []byte("NewDesc(")) {
		return nil, err
	}
	return parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
}

// metricsIn returns a "name label,label" for each metric with labels that a file
// makes. Of what is not constant, it returns the source text.
func (c *constants) metricsIn(pkg string, file *ast.File) []string {
	imports := importsOf(file)
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		from, name := selected(call.Fun)
		if !makesMetrics.MatchString(name) || !slices.Contains(metricPackages, imports[from]) {
			return true
		}
		if name, labels := c.metric(pkg, imports, call.Args); labels != "" {
			found = append(found, name+" "+labels)
		}
		return true
	})
	return found
}

// metric returns the name and the labels of a metric that is made with the
// arguments.
func (c *constants) metric(pkg string, imports map[string]string, args []ast.Expr) (name, labels string) {
	text := func(e ast.Expr) string { return c.text(pkg, imports, e) }
	var parts, all []string
	if options := fieldsOf(args[0]); options != nil {
		for _, field := range []string{"Namespace", "Subsystem", "Name"} {
			if part := options[field]; part != nil && text(part) != "" {
				parts = append(parts, text(part))
			}
		}
		args = args[1:]
	} else {
		parts, args = []string{text(args[0])}, args[min(2, len(args)):] // NewDesc has a help text
	}
	if len(args) == 0 {
		return strings.Join(parts, "_"), ""
	}
	list, ok := args[0].(*ast.CompositeLit)
	switch {
	case !ok && text(args[0]) == "nil":
	case !ok:
		all = []string{text(args[0])}
	default:
		for _, label := range list.Elts {
			all = append(all, text(label))
		}
	}
	return strings.Join(parts, "_"), strings.Join(all, ",")
}

// fieldsOf returns the fields of a literal, or of a pointer to one.
func fieldsOf(e ast.Expr) map[string]ast.Expr {
	if pointer, ok := e.(*ast.UnaryExpr); ok {
		e = pointer.X
	}
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	fields := map[string]ast.Expr{}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name] = pair.Value
			}
		}
	}
	return fields
}

// text returns the string that an expression is, or its source text.
func (c *constants) text(pkg string, imports map[string]string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if value, err := strconv.Unquote(e.Value); err == nil {
			return value
		}
	case *ast.BinaryExpr:
		return c.text(pkg, imports, e.X) + c.text(pkg, imports, e.Y)
	case *ast.Ident:
		if value := c.stringsOf(pkg)[e.Name]; value != nil {
			return c.text(pkg, imports, value)
		}
	case *ast.SelectorExpr:
		from, name := selected(e)
		if value := c.stringsOf(imports[from])[name]; value != nil {
			return c.text(imports[from], nil, value)
		}
	}
	var source bytes.Buffer
	_ = format.Node(&source, token.NewFileSet(), e) // a buffer takes everything, and the parser has checked it
	return strings.Join(strings.Fields(source.String()), "")
}

// stringsOf returns the constants and variables of a package that are strings.
func (c *constants) stringsOf(pkg string) map[string]ast.Expr {
	if known, ok := c.values[pkg]; ok {
		return known
	}
	values := map[string]ast.Expr{}
	c.values[pkg] = values
	for _, name := range c.packages[pkg].GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(c.packages[pkg].Dir, name), nil, parser.SkipObjectResolution)
		if err == nil {
			maps.Copy(values, stringsIn(file))
		}
	}
	return values
}

// stringsIn returns the constants and variables of a file that are strings.
func stringsIn(file *ast.File) map[string]ast.Expr {
	values := map[string]ast.Expr{}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST && group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			for i, name := range value.Names {
				if i < len(value.Values) && isString(value.Values[i]) {
					values[name.Name] = value.Values[i]
				}
			}
		}
	}
	return values
}

// isString returns whether an expression can be a constant string.
func isString(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.BinaryExpr:
		return isString(e.X) && isString(e.Y)
	}
	return false
}

func TestMetricsIn(t *testing.T) {
	const source = `package p

import (
	"k8s.io/component-base/metrics"
	"github.com/prometheus/client_golang/prometheus"
	other "example.com/metrics"
)

const (
	subsystem = "requests"
	kind      = "ki" + "nd"
)

var (
	a = metrics.NewCounterVec(&metrics.CounterOpts{Namespace: "n", Subsystem: subsystem, Name: "total"}, []string{kind, "code"})
	b = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gauge"}, []string{"host"})
	c = metrics.NewDesc("described", "help", []string{"name"}, nil, metrics.ALPHA, "")
	d = metrics.NewDesc(metrics.BuildFQName("a", "b", "c"), "help", nil, labels, metrics.ALPHA, "")
	e = other.NewCounterVec(nil, []string{"label"})
	f = metrics.NewCounter(&metrics.CounterOpts{Name: "plain"})
	g = metrics.NewHistogramVec(&metrics.HistogramOpts{}, nil)
)

func make(name string, labels []string) { metrics.NewHistogramVec(&metrics.HistogramOpts{Name: name}, labels) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := newConstants(nil)
	known.values["p"] = stringsIn(file)
	want := []string{"n_requests_total kind,code", "gauge host", "described name", "name labels"}
	if got := known.metricsIn("p", file); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
