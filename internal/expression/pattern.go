package expression

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

const (
	// workOfClass is the work of a class of characters that Unicode names, which the
	// parser writes out.
	workOfClass = 128
	// workOfFolding is the work of a class with characters beyond ASCII where cases
	// are the same: the parser looks at each of its characters.
	workOfFolding = 8192
)

// workOfPattern estimates the work of a regular expression: its length, and how many
// instructions it has with its repetitions written out. Those that a parser takes
// long for are not parsed.
func workOfPattern(pattern string) float64 {
	classes := workOfClass * (strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`))
	if strings.Contains(pattern, "(?") && (strings.Contains(pattern, `\x`) || !isASCII(pattern)) {
		classes += workOfFolding * strings.Count(pattern, "[")
	}
	work := float64(len(pattern) + classes)
	if classes > MaxWork {
		return work
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil { // a text that is no regular expression, or one that is refused
		return work
	}
	return work + instructions(parsed)
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// instructions is about how many instructions the program of a regular expression
// has.
func instructions(r *syntax.Regexp) float64 {
	count := 1.0
	if r.Op == syntax.OpLiteral {
		count += float64(len(r.Rune))
	}
	for _, each := range r.Sub {
		count += instructions(each)
	}
	if r.Op == syntax.OpRepeat {
		count *= float64(max(r.Min, r.Max, 1))
	}
	return count
}
