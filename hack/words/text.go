package main

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// paragraph is a text across several lines. Its line breaks are those of the
// file, so that a match has a line number.
type paragraph struct {
	line int
	text string
}

// spans are the parts of a line of Markdown that are not prose: code, the
// targets of links, comments.
var spans = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->")

// markdown returns the paragraphs of a document without code. A heading, an item of a list and a cell of a table are paragraphs.
func markdown(source string) []paragraph {
	var (
		all  []paragraph
		open bool
		code bool
	)
	number := 0
	for line := range strings.Lines(source) {
		number++
		text := strings.TrimSpace(spans.ReplaceAllString(line, "x"))
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code, open = !code, false
		case code, text == "", strings.HasPrefix(text, "#"):
			open = false
		case strings.HasPrefix(text, "|"):
			for cell := range strings.SplitSeq(strings.Trim(text, "|"), "|") {
				all = append(all, paragraph{number, strings.TrimSpace(cell)})
			}
			open = false
		case open && !strings.HasPrefix(text, "- "):
			all[len(all)-1].text += "\n" + text
		default:
			all, open = append(all, paragraph{number, strings.TrimPrefix(text, "- ")}), true
		}
	}
	return all
}

// comments returns the comments and messages of a Go file. Comments on adjacent
// lines are one paragraph.
func comments(source []byte) []paragraph {
	var (
		all  []paragraph
		last = -1 // the line of the last comment
		read scanner.Scanner
	)
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	read.Init(file, source, nil, scanner.ScanComments)
	for {
		at, kind, literal := read.Scan()
		line := file.Line(at)
		switch {
		case kind == token.EOF:
			return all
		case kind == token.STRING && strings.HasPrefix(literal, `"`) && strings.Contains(literal, " "):
			all = append(all, paragraph{line, literal})
		case kind == token.COMMENT && !isDirective(literal):
			text := strings.TrimSpace(strings.TrimPrefix(literal, "//"))
			if line == last+1 && text != "" && len(all) > 0 {
				all[len(all)-1].text += "\n" + text
			} else {
				all = append(all, paragraph{line, text})
			}
			last = line
		}
	}
}

// isDirective reports whether a comment is for a tool: //go:embed, //nolint, //
// +optional.
func isDirective(comment string) bool {
	return strings.HasPrefix(comment, "// +") || strings.HasPrefix(comment, "//") && !strings.HasPrefix(comment, "// ") && comment != "//"
}
