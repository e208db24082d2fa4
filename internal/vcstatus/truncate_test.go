package vcstatus

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for message, want := range map[string]string{"plain text, Grüße": "plain text, Grüße", "a\x1b[2J\r\nb\x00\u202e\u2028": "a [2J  b   "} {
		if got := Printable(message); got != want {
			t.Errorf("of %q: got %q, want %q", message, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for message, want := range map[string]int{"": 0, "short": 5, strings.Repeat("x", 20): 10, strings.Repeat("ü", 20): 10, "x" + strings.Repeat("ü", 20): 9} {
		if got := Truncate(message, 10); len(got) != want || !strings.HasPrefix(message, got) || !utf8.ValidString(got) {
			t.Errorf("of %q: got %q, want %d bytes", message, got, want)
		}
	}
}
