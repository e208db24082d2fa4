// Kinds writes generated lists of kinds, from the kinds that the syncer syncs:
// the types of the API that enumerate kinds, and tables of the documents.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// types is the generated file of the API.
const types = "apis/tenancy/v1alpha1/zz_generated.kinds.go"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kinds:", err)
		os.Exit(1)
	}
}

// run writes into the repository whose folder is the argument.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the folder of the repository, got %q", args)
	}
	table, err := app.Table()
	if err != nil {
		return err
	}
	files, err := generate(args[0], table)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), content, 0o644); err != nil { //nolint:gosec // public sources
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// generate returns the generated files, by their names in the repository.
func generate(root string, table []*kinds.Kind) (map[string][]byte, error) {
	api, err := writeTypes(table)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{types: api}
	for _, part := range parts() {
		if files[part.file] == nil {
			if files[part.file], err = os.ReadFile(filepath.Join(root, part.file)); err != nil { //nolint:gosec // the developer names the folder
				return nil, fmt.Errorf("read a document: %w", err)
			}
		}
		if files[part.file], err = part.replace(files[part.file], table); err != nil {
			return nil, err
		}
	}
	return files, nil
}
