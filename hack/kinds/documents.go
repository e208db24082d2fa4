package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// end is the line after a generated part of a document.
const end = "<!-- kinds end -->\n"

// part is a generated part of a document, between two comments.
type part struct {
	file, name string
	write      func([]*kinds.Kind) string
}

func parts() []part {
	return []part{
		{"README.md", "kinds", synced},
		{"docs/admins/sync.md", "modes", modes},
		{"docs/admins/sync.md", "classes", func(table []*kinds.Kind) string { return paragraph(listsOf(table).Classes) }},
		{"docs/admins/limits-and-quotas.md", "counts", func(table []*kinds.Kind) string { return paragraph(listsOf(table).Counts) }},
		{"docs/admins/validation-rules.md", "declared", func(table []*kinds.Kind) string { return paragraph(listsOf(table).Declared) }},
	}
}

// begin returns the line before the part.
func (p part) begin() string { return "<!-- " + p.name + ": make generate writes this -->\n" }

// replace returns a document with the part replaced.
func (p part) replace(document []byte, table []*kinds.Kind) ([]byte, error) {
	before, rest, begins := bytes.Cut(document, []byte(p.begin()))
	_, after, ends := bytes.Cut(rest, []byte(end))
	if !begins || !ends {
		return nil, fmt.Errorf("%s has no part between %q and %q", p.file, p.begin(), end)
	}
	return slices.Concat(before, []byte(p.begin()), []byte(p.write(table)), []byte(end), after), nil
}

// synced returns a table of how each kind is synced. Kinds that are synced the
// same way share a row.
func synced(table []*kinds.Kind) string {
	summary := func(k *kinds.Kind) string { return k.Summary }
	return "| kind | how |\n|---|---|\n" + rows(table, summary, func(names []string, how string) string {
		return fmt.Sprintf("| %s | %s |\n", strings.Join(names, ", "), how)
	})
}

// modes returns a table of the modes that each kind can be synced in.
func modes(table []*kinds.Kind) string {
	accepted := func(k *kinds.Kind) string {
		modes := k.Modes()
		if modes == nil {
			return "always synced"
		}
		names := make([]string, len(modes))
		for i, mode := range modes {
			names[i] = string(mode)
		}
		return code(names)
	}
	return "| kind | modes, the default first |\n|---|---|\n" + rows(table, accepted, func(names []string, modes string) string {
		return fmt.Sprintf("| %s | %s |\n", code(names), modes)
	})
}

// rows returns a row for each text, with all kinds that have it.
func rows(table []*kinds.Kind, text func(*kinds.Kind) string, row func(names []string, text string) string) string {
	var texts []string
	names := map[string][]string{}
	for _, k := range table {
		one := text(k)
		if names[one] == nil {
			texts = append(texts, one)
		}
		names[one] = append(names[one], k.Name)
	}
	var out strings.Builder
	for _, one := range texts {
		out.WriteString(row(names[one], one))
	}
	return out.String()
}

// paragraph returns names as code, in lines of at most 120 columns.
func paragraph(names []string) string {
	var out strings.Builder
	column := 0
	for i, name := range names {
		word := code([]string{name})
		if i < len(names)-1 {
			word += ","
		}
		switch {
		case column == 0:
		case column+1+len(word) > 120:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String() + "\n"
}

// code returns names as code.
func code(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
