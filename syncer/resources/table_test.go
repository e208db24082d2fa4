package resources

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
)

// TestScopes compares the scope of each kind with the API, as client-go was
// generated from it: a client of a namespaced resource takes a namespace.
func TestScopes(t *testing.T) {
	for _, flow := range All(Agent{}, nil) {
		k := flow.Erase()
		namespaced, found := takesNamespace(reflect.TypeOf(k.Object))
		if !found {
			t.Errorf("%s: client-go has no client", k.Name)
		}
		if namespaced == k.ClusterScoped {
			t.Errorf("syncer/resources/%s.go: ClusterScoped is %t; it has to be %t", strings.ToLower(k.Name), k.ClusterScoped, !namespaced)
		}
	}
}

// takesNamespace reports whether client-go's client of a type takes a
// namespace.
func takesNamespace(object reflect.Type) (namespaced, found bool) {
	for group := range reflect.TypeFor[kubernetes.Interface]().Methods() {
		if group.Type.NumIn() != 0 || group.Type.NumOut() != 1 || group.Type.Out(0).Kind() != reflect.Interface {
			continue
		}
		for resource := range group.Type.Out(0).Methods() {
			if resource.Type.NumOut() != 1 || resource.Type.Out(0).Kind() != reflect.Interface {
				continue
			}
			create, ok := resource.Type.Out(0).MethodByName("Create")
			if ok && create.Type.NumIn() > 1 && create.Type.In(1) == object {
				return resource.Type.NumIn() == 1, true
			}
		}
	}
	return false, false
}

// TestAllHasEveryKind checks that the table has each kind that a file of the
// package declares.
func TestAllHasEveryKind(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch f, ok := decl.(*ast.FuncDecl); {
			case !ok:
			case f.Name.Name == "All":
				listed = called(f)
			case declaresBuiltIn(f):
				declared = append(declared, f.Name.Name)
			}
		}
	}
	for _, name := range declared {
		if !slices.Contains(listed, name) {
			t.Errorf("syncer/resources/resources.go: All lacks %s", name)
		}
	}
	if len(declared) != len(All(Agent{}, nil)) {
		t.Errorf("%d functions declare kinds, and All returns %d", len(declared), len(All(Agent{}, nil)))
	}
}

// declaresBuiltIn reports whether a function returns a built-in kind.
func declaresBuiltIn(f *ast.FuncDecl) bool {
	if f.Recv != nil || !f.Name.IsExported() || f.Name.Name == "Custom" || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && result.Sel.Name == "Flow"
}

// called returns the names of the functions that a function calls.
func called(f *ast.FuncDecl) []string {
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}
