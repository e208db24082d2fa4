package component

import "testing"

func TestParseName(t *testing.T) {
	if got, err := parseName("vc-system/vc-dns"); err != nil || got.Namespace != "vc-system" || got.Name != "vc-dns" {
		t.Errorf("got %v (%v)", got, err)
	}
	if got, err := parseName(""); err != nil || got.Name != "" {
		t.Errorf("of an empty text, got %v (%v)", got, err)
	}
	for _, wrong := range []string{"vc-dns", "/vc-dns", "vc-system/", "a/b/c"} {
		if _, err := parseName(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
