package vcstatus

import (
	"strings"
	"unicode"
)

// Truncate returns the beginning of a message, of at most that many bytes, in
// valid UTF-8.
func Truncate(message string, most int) string {
	return strings.ToValidUTF8(message[:min(len(message), most)], "")
}

// Printable returns a message of others in one line, without characters that a
// terminal obeys: a space is in the place of each.
func Printable(message string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, message)
}
