package session_test

import (
	"testing"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// TestIdentityStays: what was compared for a tenant holds until something
// changes that a copy depends on.
func TestIdentityStays(t *testing.T) {
	s := session.NewTenant(kindstest.Blue())
	for name, tc := range map[string]struct {
		change func(*translate.Tenant)
		stays  bool
	}{
		"nothing":         {func(*translate.Tenant) {}, true},
		"the weight":      {func(t *translate.Tenant) { t.Weight++ }, true},
		"opaque metadata": {func(t *translate.Tenant) { t.Opaque = []string{"example.com/"} }, false},
		"the root's UID":  {func(t *translate.Tenant) { t.RootUID = "another" }, false},
	} {
		was, now := s.IdentityVersion(), s.Identity()
		tc.change(&now)
		s.SetIdentity(now)
		if stays := s.IdentityVersion() == was; stays != tc.stays {
			t.Errorf("%s changed: what was compared holds: %t, want %t", name, stays, tc.stays)
		}
	}
}
