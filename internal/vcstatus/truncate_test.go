package vcstatus

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	for message, want := range map[string]int{"": 0, "short": 5, strings.Repeat("x", 20): 10, strings.Repeat("ü", 20): 10, "x" + strings.Repeat("ü", 20): 9} {
		if got := Truncate(message, 10); len(got) != want || !strings.HasPrefix(message, got) || !utf8.ValidString(got) {
			t.Errorf("of %q: got %q, want %d bytes", message, got, want)
		}
	}
}
