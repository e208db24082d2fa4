package terminal

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"Plain":          {"pod shop/web-0: ä 日本", "pod shop/web-0: ä 日本"},
		"Layout":         {"NAME\tAGE\nred\t1m\n", "NAME\tAGE\nred\t1m\n"},
		"CursorUp":       {"a\x1b[1A\x1b[2Kb", `a\u001b[1A\u001b[2Kb`},
		"Title":          {"\x1b]0;owned\a", `\u001b]0;owned\u0007`},
		"CarriageReturn": {"rejected\rsynced  ", `rejected\u000dsynced  `},
		"Backspace":      {"ab\b\bcd", `ab\u0008\u0008cd`},
		"EightBitCSI":    {"a\u009b2Jb", `a\u009b2Jb`},
		"RawByte":        {"a\x9b2Jb", `a\x9b2Jb`},
		"Override":       {"a\u202egnp.exe", `a\u202egnp.exe`},
		"Isolate":        {"\u2066a\u2069", `\u2066a\u2069`},
		"ZeroWidth":      {"re\u200bd", `re\u200bd`},
		"LineSeparator":  {"a\u2028b", `a\u2028b`},
		"Tag":            {"a\U000e0041", `a\U000e0041`},
		"Delete":         {"a\x7f", `a\u007f`},
		"Empty":          {"", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Escape(tc.text); got != tc.want {
				t.Errorf("Escape(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	if got := Line("a\nVERDICT\tsynced\x1b"); got != `a\nVERDICT\tsynced\u001b` {
		t.Errorf("got %q", got)
	}
}

// TestJSONKeepsItsValue: what -o json prints is read as it was.
func TestJSONKeepsItsValue(t *testing.T) {
	want := "a\u009b\u202e\x7f\u2028\nb\t"
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(Escape(string(data))), &got); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestWriterAtAnyCut: however a text is divided among writes, the same is
// written.
func TestWriterAtAnyCut(t *testing.T) {
	const text = "a\x1b日\u009b\xe2\x82z\U0001f600\n"
	for i := range len(text) {
		for j := i; j < len(text); j++ {
			var out strings.Builder
			w := NewWriter(&out)
			for _, part := range []string{text[:i], text[i:j], text[j:]} {
				if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
					t.Fatal(n, err)
				}
			}
			if out.String() != Escape(text) {
				t.Fatalf("cut at %d and %d: %q, want %q", i, j, out.String(), Escape(text))
			}
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2J")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Escape(text) {
			if hidden(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q has %U", Escape(text), r)
			}
		}
	})
}
