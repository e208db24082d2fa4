// Package terminal escapes text before a terminal shows it. Names, messages and
// events of tenants may contain sequences that move the cursor, hide text or
// change its direction.
package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape replaces the characters of a text that a terminal does not show as
// they are. Each becomes its escape sequence in JSON, so that JSON with such
// characters in its strings keeps its value; bytes that are not UTF-8 become \x
// and two digits. Newlines and tabs are kept.
func Escape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		write(&b, r, text[:size])
		text = text[size:]
	}
	return b.String()
}

// Line escapes a text of one line: newlines and tabs as well.
func Line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Escape(text))
}

// write writes a character, or its escape sequence.
func write(b *strings.Builder, r rune, raw string) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case r == '\n' || r == '\t':
		b.WriteRune(r)
	case hidden(r) && r > 0xffff:
		// JSON has no escape sequence for one character beyond 16 bits.
		fmt.Fprintf(b, `\U%08x`, r)
	case hidden(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteString(raw)
	}
}

// hidden reports whether a terminal acts on a character, or does not show
// it: control characters, and format characters such as those that change the
// direction of text.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// NewWriter returns a writer that escapes what is written to it.
func NewWriter(next io.Writer) io.Writer { return &writer{next: next} }

// writer escapes text. It keeps the beginning of a character until the rest of
// it is written.
type writer struct {
	next io.Writer
	rest []byte
}

// Write writes the characters of p that are complete.
func (w *writer) Write(p []byte) (int, error) {
	data := slices.Concat(w.rest, p)
	complete := len(data) - incomplete(data)
	w.rest = data[complete:]
	if _, err := io.WriteString(w.next, Escape(string(data[:complete]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// incomplete returns how many bytes at the end are the beginning of a character.
func incomplete(data []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if last := data[len(data)-i:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return i
		}
	}
	return 0
}
