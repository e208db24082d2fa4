package resolve

import (
	"fmt"
	"net/http"
	"testing"
)

type index struct {
	entries   map[string]Entry
	byDefault string
}

func (i index) Find(name string) (Entry, bool) { entry, ok := i.entries[name]; return entry, ok }
func (i index) Default() string                { return i.byDefault }

// TestResolve has every combination of what is asked, who asks, and whether
// there is a tenant by default.
func TestResolve(t *testing.T) {
	red, blue := Entry{Key: "red-key"}, Entry{Key: "blue-key"}
	known := map[string]Entry{
		"red-key": red, "red": red, "blue-key": blue, "blue": blue, "common-key": {Key: "common-key"},
		"far-key": {Key: "far-key", Opaque: true}, "down-key": {Key: "down-key", Down: true},
	}
	const refused = "403"
	asks := []string{"", "red", "red-key", "blue", "far-key", "down-key", "common-key", "unknown", System}
	callers := map[string]Identity{
		"anonymous": {}, "an unknown token": {Credentials: true}, "red's": {Of: "red-key", Credentials: true},
		"down's": {Of: "down-key", Credentials: true}, "of a deleted tenant": {Of: "gone-key", Credentials: true},
		"the super cluster's": {Of: System, Credentials: true},
	}
	// The table: for each caller, the answers to asks in their order, without and
	// with a default tenant.
	r := refused
	want := map[string][2][]string{
		"anonymous": {
			{r, r, r, r, r, r, r, r, r},
			{"common-key", r, r, r, r, r, "common-key", r, r},
		},
		"an unknown token": {
			{r, r, r, r, "far-key", r, r, r, r},
			{"common-key", r, r, r, "far-key", r, "common-key", r, r},
		},
		"red's": {
			{"red-key", "red-key", "red-key", r, r, r, r, r, r},
			{"red-key", "red-key", "red-key", r, r, r, r, r, r},
		},
		"down's": {
			{"503", r, r, r, r, "503", r, r, r},
			{"503", r, r, r, r, "503", r, r, r},
		},
		"of a deleted tenant": {
			{r, r, r, r, r, r, r, r, r},
			{r, r, r, r, r, r, r, r, r},
		},
		"the super cluster's": {
			{System, r, r, r, r, r, r, r, System},
			{System, r, r, r, r, r, r, r, System},
		},
	}
	for who, caller := range callers {
		for i, byDefault := range []string{"", "common-key"} {
			for j, asked := range asks {
				t.Run(fmt.Sprintf("%s asks for %q, default %q", who, asked, byDefault), func(t *testing.T) {
					target, refusal := Resolve(Asked{Tenant: asked}, caller, index{known, byDefault})
					got := target.Key
					if refusal != nil {
						got = fmt.Sprint(refusal.Code)
					}
					if got != want[who][i][j] {
						t.Errorf("got %s (%v), want %s", got, refusal, want[who][i][j])
					}
				})
			}
		}
	}
}

// TestRefusals: an unknown tenant cannot be told from one that the caller may
// not know of, and one that is down may be tried again.
func TestRefusals(t *testing.T) {
	known := index{entries: map[string]Entry{"x": {Key: "x-key"}, "down": {Key: "down-key", Down: true}}}
	caller := Identity{Of: "down-key", Credentials: true}
	_, hidden := Resolve(Asked{Tenant: "x"}, caller, known)
	_, unknown := Resolve(Asked{Tenant: "x"}, caller, index{})
	if hidden == nil || unknown == nil || *hidden != *unknown {
		t.Errorf("got %v for a tenant of others, %v for none", hidden, unknown)
	}
	_, down := Resolve(Asked{Tenant: "down"}, caller, known)
	if down == nil || down.Code != http.StatusServiceUnavailable || down.RetryAfter == 0 {
		t.Errorf("got %v, want that it is retried", down)
	}
}
