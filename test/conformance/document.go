package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"text/template"
)

//go:embed document.md.tmpl
var document string

// write writes the comparison as a document.
func (c comparison) write(file string) error {
	parsed, err := template.New("document").Funcs(template.FuncMap{"table": table}).Parse(document)
	if err != nil {
		return err
	}
	text := &bytes.Buffer{}
	if err := parsed.Execute(text, c); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// table is the rows of a table of failures.
func table(failures []failure) string {
	if len(failures) == 0 {
		return "None."
	}
	rows := &strings.Builder{}
	rows.WriteString("| spec | why |\n|---|---|\n")
	for _, f := range failures {
		fmt.Fprintf(rows, "| %s | %s |\n", strings.ReplaceAll(f.Name, "|", `\|`), f.Reason)
	}
	return strings.TrimSuffix(rows.String(), "\n")
}
