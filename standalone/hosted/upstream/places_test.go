package upstream

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requestPath has the packages through which a request passes on its way to the
// storage, as prefixes of import paths.
var requestPath = []string{
	"k8s.io/apiextensions-apiserver/pkg/",
	"k8s.io/apiserver/",
	"k8s.io/kube-aggregator/pkg/",
	"k8s.io/kubernetes/cmd/kube-apiserver/",
	"k8s.io/kubernetes/pkg/controlplane",
	"k8s.io/kubernetes/pkg/kubeapiserver/",
	"k8s.io/kubernetes/pkg/kubelet/client",
	"k8s.io/kubernetes/pkg/quota/",
	"k8s.io/kubernetes/pkg/registry/",
	"k8s.io/kubernetes/pkg/routes",
	"k8s.io/kubernetes/pkg/serviceaccount",
	"k8s.io/kubernetes/plugin/pkg/",
}

// functions has names of functions by the import path of their package.
type functions map[string][]string

// makeContexts has the functions that return a context, or a request with a
// context, without the values of a caller's context, and types whose literals
// are such requests. WithoutCancel keeps the values, but its context outlives
// the request.
var makeContexts = functions{
	"context":                                {"Background", "TODO", "WithoutCancel"},
	"k8s.io/apimachinery/pkg/util/wait":      {"ContextForChannel"},
	"k8s.io/apiserver/pkg/endpoints/request": {"NewContext", "NewDefaultContext"},
	"k8s.io/apiserver/pkg/server":            {"SetupSignalContext"},
	"net/http":                               {"NewRequest", "Request{}"},
}

// makeStorages has the functions that return a storage or a client of etcd.
// RESTOptionsGetter, which a chain replaces, should be their only caller.
var makeStorages = functions{
	"go.etcd.io/etcd/client/v3":                      {"New", "NewFromURL", "NewFromURLs"},
	"go.etcd.io/etcd/client/v3/kubernetes":           {"New"},
	"k8s.io/apiserver/pkg/registry/generic":          {"NewRawStorage", "UndecoratedStorage"},
	"k8s.io/apiserver/pkg/registry/generic/registry": {"StorageWithCacher"},
	"k8s.io/apiserver/pkg/storage/etcd3":             {"New", "NewCompactor", "StartCompactorPerEndpoint"},
	"k8s.io/apiserver/pkg/storage/storagebackend/factory": {
		"Create", "CreateHealthCheck", "CreateMonitor", "CreateProber", "CreateReadyCheck",
	},
}

// TestContexts tests that every place at which upstream makes a context is
// decided in contexts.txt. In a chain of several tenants, the tenant of a
// request is a value of its context, so such a place has none.
func TestContexts(t *testing.T) {
	compare(t, "contexts.txt", places(t, makeContexts), "bound", "off", "replaced", "unrelated")
}

// TestStorages tests that every place at which upstream makes a storage is
// decided in storages.txt. A storage that bypasses the RESTOptionsGetter of a
// chain does not set the prefix of a tenant.
func TestStorages(t *testing.T) {
	compare(t, "storages.txt", places(t, makeStorages), "bypass", "getter", "off", "unrelated")
}

// places returns a "file function call" for each use of the functions in the
// request path.
func places(t *testing.T, of functions) []string {
	t.Helper()
	var found []string
	for _, pkg := range linkedPackages(t) {
		inPath := func(prefix string) bool { return strings.HasPrefix(pkg.ImportPath+"/", prefix) }
		if !slices.ContainsFunc(requestPath, inPath) {
			continue
		}
		for _, name := range pkg.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, place := range usesIn(file, of) {
				found = append(found, pkg.ImportPath+"/"+name+" "+place)
			}
		}
	}
	return found
}

// usesIn returns a "function call" for each use of the functions in a file. A
// function that is passed on is a use, too.
func usesIn(file *ast.File, of functions) []string {
	imports := importsOf(file)
	var found []string
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(node ast.Node) bool {
			pkg, name := selected(node)
			if slices.Contains(of[imports[pkg]], name) {
				found = append(found, declName(decl)+" "+pkg+"."+name)
			}
			return true
		})
	}
	return found
}

// selected returns the package and the name of an identifier of another
// package. The name of a type in a literal ends with braces.
func selected(node ast.Node) (pkg, name string) {
	suffix := ""
	if literal, ok := node.(*ast.CompositeLit); ok {
		node, suffix = literal.Type, "{}"
	}
	selector, ok := node.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	ident, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return ident.Name, selector.Sel.Name + suffix
}

// importsOf returns the import paths of a file by the names of the packages.
func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		if spec.Name != nil {
			imports[spec.Name.Name] = path
		} else {
			imports[packageName(path)] = path
		}
	}
	return imports
}

// packageName returns the usual name of a package.
func packageName(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if _, err := strconv.Atoi(strings.TrimPrefix(last, "v")); err == nil && len(parts) > 1 {
		return parts[len(parts)-2]
	}
	return last
}

// declName returns the name of a function, with the type of its receiver.
func declName(decl ast.Decl) string {
	function, ok := decl.(*ast.FuncDecl)
	switch {
	case !ok:
		return "(variable)"
	case function.Recv == nil:
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + function.Name.Name
	}
	return "(method)." + function.Name.Name
}

func TestUsesIn(t *testing.T) {
	const source = `package p

import (
	"context"
	other "context"
	"example.com/fake/context/v2"
	request "k8s.io/apiserver/pkg/endpoints/request"
	"net/http"
)

var background = other.Background()

func (s *Store[T]) Get(ctx context.Context) { s.get(context.TODO()); s.get(ctx) }
func (s Map[K, V]) Run()                    { go func() { s.run(request.NewContext) }() }
func download()                             { http.NewRequest("GET", "/", nil); http.NewRequestWithContext(nil, "GET", "/", nil) }
func review()                               { s.authenticate(&http.Request{Header: h}); var _ *http.Request }
func todo()                                 { s.context.TODO(); TODO() }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", strings.Replace(source, "\t\"example.com/fake/context/v2\"\n", "", 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"(variable) other.Background", "Store.Get context.TODO", "Map.Run request.NewContext", "download http.NewRequest",
		"review http.Request{}",
	}
	if got := usesIn(file, makeContexts); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// A package of the same name is not the one that is searched for.
	file, err = parser.ParseFile(token.NewFileSet(), "p.go",
		"package p\n\nimport \"example.com/fake/context/v2\"\n\nfunc f() { context.TODO() }\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := usesIn(file, makeContexts); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
