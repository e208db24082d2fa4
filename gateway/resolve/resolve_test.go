package resolve

import (
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/members"
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
		"red-key": red, "red": red, "blue-key": blue, "blue": blue, System: {Key: System}, "common-key": {Key: "common-key"},
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

// TestMembers: a member reaches the tenants of which it is one, the API of
// projects, and nothing else.
func TestMembers(t *testing.T) {
	of := members.List{{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}}
	known := map[string]Entry{
		"red-key": {Key: "red-key", Members: of}, "red": {Key: "red-key", Members: of}, "blue-key": {Key: "blue-key"},
		"down-key": {Key: "down-key", Members: of, Down: true}, "common-key": {Key: "common-key"},
	}
	jane, joe := &user.DefaultInfo{Name: "jane"}, &user.DefaultInfo{Name: "joe"}
	callers := map[string]Identity{
		"jane": {Of: System, Credentials: true, SuperUser: jane}, "joe": {Of: System, Credentials: true, SuperUser: joe},
		"not recognized": {Credentials: true}, "jane of red": {Of: "red-key", Credentials: true},
	}
	const r, asMember = "403", " as a member"
	asks := []string{"", "red", "red-key", "blue-key", "down-key", "common-key", "unknown", System, Projects}
	for who, want := range map[string][]string{
		"jane":           {r, "red-key" + asMember, "red-key" + asMember, r, "503", r, r, r, Projects},
		"joe":            {r, r, r, r, r, r, r, r, Projects},
		"not recognized": {"common-key", r, r, r, r, "common-key", r, r, r},
		"jane of red":    {"red-key", "red-key", "red-key", r, r, r, r, r, r},
	} {
		for i, asked := range asks {
			target, refusal := Resolve(Asked{Tenant: asked}, callers[who], index{known, "common-key"})
			got := target.Key
			if target.Member != nil {
				got += asMember
			}
			if refusal != nil {
				got = fmt.Sprint(refusal.Code)
			}
			if got != want[i] {
				t.Errorf("%s asks for %q: got %s (%v), want %s", who, asked, got, refusal, want[i])
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
