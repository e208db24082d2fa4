package main

import (
	"bytes"
	_ "embed" // the template
	"fmt"
	"slices"
	"strings"
	"text/template"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

//go:embed types.go.tmpl
var source string

// lists are names of kinds, in the order of the table.
type lists struct {
	// Declared are the kinds that tenants declare. They are validated, and
	// Counts are the names of their numbers of objects in quotas.
	Declared, Counts []string
	// Optional are the kinds that spec.sync.kinds accepts; Referenced those that
	// can be synced on demand, and NeverOff those that cannot be turned off.
	Optional, Referenced, NeverOff []string
	// Classes are the kinds that the super cluster offers.
	Classes []string
}

func listsOf(table []*kinds.Kind) lists {
	var l lists
	for _, k := range table {
		modes := k.Modes()
		for _, list := range []struct {
			names *[]string
			has   bool
		}{
			{&l.Declared, k.Down != nil},
			{&l.Optional, len(modes) > 0},
			{&l.Referenced, slices.Contains(modes, tenancyv1alpha1.SyncReferenced)},
			{&l.NeverOff, len(modes) > 0 && !slices.Contains(modes, tenancyv1alpha1.SyncOff)},
			{&l.Classes, k.Up != nil && k.Up.Class},
		} {
			if list.has {
				*list.names = append(*list.names, k.Name)
			}
		}
		if k.Down != nil {
			l.Counts = append(l.Counts, "count/"+k.GroupResource().String())
		}
	}
	return l
}

// writeTypes returns the Go file with the types of the API that list kinds.
func writeTypes(table []*kinds.Kind) ([]byte, error) {
	t, err := template.New("types").Funcs(template.FuncMap{
		"enum":  func(names []string) string { return strings.Join(names, ";") },
		"cel":   func(names []string) string { return "'" + strings.Join(names, "', '") + "'" },
		"prose": prose,
	}).Parse(source)
	if err != nil {
		return nil, fmt.Errorf("parse types.go.tmpl: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, listsOf(table)); err != nil {
		return nil, fmt.Errorf("execute types.go.tmpl: %w", err)
	}
	return out.Bytes(), nil
}

// prose returns names as a sentence has them: A, B and C.
func prose(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
