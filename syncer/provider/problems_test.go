package provider

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestProblemsOfATenant(t *testing.T) {
	var p problems
	for i, step := range []struct {
		about, message string
		isNew          bool
		all            string
	}{
		{"widgets.example.com", "", false, ""},
		{"widgets.example.com", "not there", true, "widgets.example.com: not there"},
		{"widgets.example.com", "not there", false, "widgets.example.com: not there"},
		{"widgets.example.com", "not served", true, "widgets.example.com: not served"},
		{"gadgets.example.com", "not there", true, "gadgets.example.com: not there; widgets.example.com: not served"},
		{"widgets.example.com", "", true, "gadgets.example.com: not there"},
		{"widgets.example.com", "", false, "gadgets.example.com: not there"},
		{"gadgets.example.com", "", true, ""},
	} {
		if got := p.set(step.about, step.message); got != step.isNew {
			t.Errorf("step %d: new %t, want %t", i, got, step.isNew)
		}
		if got := p.String(); got != step.all {
			t.Errorf("step %d: all is %q, want %q", i, got, step.all)
		}
	}
}

// TestProblemsFitIntoACondition checks the limits: a tenant's apiserver can
// send answers of any length.
func TestProblemsFitIntoACondition(t *testing.T) {
	var p problems
	long := strings.Repeat("é", 40_000)
	for i := range 32 { // as many as a VirtualCluster can name
		p.set(fmt.Sprintf("%s%02d.%s", strings.Repeat("r", 61), i, strings.Repeat("g", 60)), long)
	}
	all := p.String()
	if len(all) > 32_000 || !utf8.ValidString(all) { // the limit of a condition is 32768, and it has other text as well
		t.Errorf("%d bytes, valid: %t", len(all), utf8.ValidString(all))
	}
	if p.set(strings.Repeat("r", 61)+"00."+strings.Repeat("g", 60), long) {
		t.Error("the same problem is new again")
	}
}
