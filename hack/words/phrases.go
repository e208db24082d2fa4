package main

import (
	"fmt"
	"regexp"
	"strings"
)

// phrase is a phrase to avoid.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// match is a phrase to avoid in a text.
type match struct {
	line          int
	text, instead string
}

// parse reads a list of phrases.
func parse(list string) ([]phrase, error) {
	var phrases []phrase
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, instead, ok := strings.Cut(line, "=>")
		if !ok {
			return nil, fmt.Errorf("parse %q: no => in the line", line)
		}
		compiled, err := compile(strings.TrimSpace(pattern))
		if err != nil {
			return nil, fmt.Errorf("parse %q: %w", line, err)
		}
		phrases = append(phrases, phrase{compiled, strings.TrimSpace(instead)})
	}
	return phrases, nil
}

// compile returns an expression whose first group is the phrase. A space in the
// phrase matches the end of a line.
func compile(pattern string) (*regexp.Regexp, error) {
	pattern = strings.ReplaceAll(pattern, " ", `\s+`)
	if rest, begins := strings.CutPrefix(pattern, "^"); begins {
		return regexp.Compile(`(?:^|[.:!?]\s+|\A\W+)(` + rest + `)`)
	}
	return regexp.Compile(`(?i)\b(` + pattern + `)\b`)
}

// matches returns the phrases in paragraphs, in the order of the paragraphs.
func matches(phrases []phrase, paragraphs []paragraph) []match {
	var found []match
	for _, p := range paragraphs {
		for _, phrase := range phrases {
			for _, at := range phrase.pattern.FindAllStringSubmatchIndex(p.text, -1) {
				text := strings.Join(strings.Fields(p.text[at[2]:at[3]]), " ")
				line := p.line + strings.Count(p.text[:at[2]], "\n")
				found = append(found, match{line, text, phrase.instead})
			}
		}
	}
	return found
}
