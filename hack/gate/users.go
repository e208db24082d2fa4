package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
)

// suiteFile is the one that all specs of a folder need.
const suiteFile = "suite_test.go"

// specUsers returns for each file of the folders with specs those whose specs a
// change of it concerns: itself, and files that use what it declares, directly or
// through others.
func specUsers() (map[string][]string, error) {
	all := map[string][]string{}
	for _, folder := range specFolders() {
		users, err := usersIn(folder)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, users)
	}
	return all, nil
}

// usersIn returns the same of the test files of one folder.
func usersIn(folder string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	parsed, declared := map[string]*ast.File{}, map[string]string{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, fmt.Errorf("to know which specs use a file: %w", err)
		}
		parsed[file] = tree
		for name := range tree.Scope.Objects {
			declared[name] = file
		}
	}
	direct := map[string]map[string]bool{}
	use := func(file, used string) {
		if file == "" || used == "" {
			return // what is not declared here
		}
		if direct[used] == nil {
			direct[used] = map[string]bool{}
		}
		direct[used][file] = true
	}
	for file, tree := range parsed {
		use(file, filepath.Join(folder, suiteFile))
		for _, name := range tree.Unresolved {
			use(file, declared[name.Name])
		}
		for _, receiver := range receivers(tree) {
			use(declared[receiver], file) // who has a value of the type can call its methods
		}
	}
	users := map[string][]string{}
	for _, file := range files {
		users[file] = reached(file, direct)
	}
	return users, nil
}

// receivers returns the types of which a file has methods.
func receivers(file *ast.File) (names []string) {
	for _, declaration := range file.Decls {
		method, isFunc := declaration.(*ast.FuncDecl)
		if !isFunc || method.Recv == nil {
			continue
		}
		ast.Inspect(method.Recv.List[0].Type, func(n ast.Node) bool {
			if name, isName := n.(*ast.Ident); isName {
				names = append(names, name.Name)
			}
			return true
		})
	}
	return names
}

// reached returns a file and what uses it.
func reached(file string, direct map[string]map[string]bool) []string {
	all, known := []string{file}, map[string]bool{file: true}
	for i := 0; i < len(all); i++ {
		for user := range direct[all[i]] {
			if !known[user] {
				known[user] = true
				all = append(all, user)
			}
		}
	}
	return all
}
