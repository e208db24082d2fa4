package syncdown

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

func TestStateCovers(t *testing.T) {
	at := func(uid, resourceVersion string) state {
		cm := kindstest.Settings()
		cm.UID, cm.ResourceVersion = "uid", resourceVersion
		s := stateOf(cm)
		if uid != "" {
			s.uid = "another"
		}
		return s
	}
	for name, tc := range map[string]struct {
		noted state
		shown string
		want  bool
	}{
		"the same state":                     {at("", "7"), "7", true},
		"an earlier state":                   {at("", "7"), "6", true},
		"an earlier state with fewer digits": {at("", "10"), "9", true},
		"a later state":                      {at("", "7"), "8", false},
		"another object":                     {at("another", "7"), "7", false},
		"states without an order":            {at("", "x"), "7", false},
		"the same state without an order":    {at("", "x"), "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			shown := kindstest.Settings()
			shown.UID, shown.ResourceVersion = "uid", tc.shown
			if got := tc.noted.covers(shown); got != tc.want {
				t.Errorf("covers = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAgreements(t *testing.T) {
	k := kindstest.Typed(kindstest.Needed())
	blue, changedBlue := kindstest.Blue(), kindstest.Blue()
	sides := func(tenant, super string, identity *translate.Tenant) session.Objects {
		o := session.Objects{Key: kindstest.SettingsKey(), Tenant: kindstest.Settings(), Super: kindstest.CopyOf(kindstest.Settings()), Identity: identity}
		o.Tenant.SetResourceVersion(tenant)
		o.Super.SetResourceVersion(super)
		return o
	}
	var noted agreements
	if got := noted.compare(k, sides("1", "1", &blue)); got != unknown {
		t.Errorf("before anything was noted: %d", got)
	}
	noted.agree(k, sides("7", "7", &blue))
	replaced := sides("7", "7", &blue)
	replaced.Super.SetUID("another")
	other := sides("7", "7", &blue)
	other.Key = client.ObjectKey{Namespace: "default", Name: "other"}
	for name, tc := range map[string]struct {
		o    session.Objects
		want comparison
	}{
		"as noted":                   {sides("7", "7", &blue), compared},
		"the caches lag behind":      {sides("6", "5", &blue), compared},
		"the tenant's has changed":   {sides("8", "7", &blue), changed},
		"the copy has changed":       {sides("7", "8", &blue), changed},
		"the copy was replaced":      {replaced, changed},
		"the tenant is another":      {sides("7", "7", &changedBlue), unknown},
		"another object of the kind": {other, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := noted.compare(k, tc.o); got != tc.want {
				t.Errorf("stand = %d, want %d", got, tc.want)
			}
		})
	}
	noted.forget(k, kindstest.SettingsKey())
	if got := noted.compare(k, sides("7", "7", &blue)); got != unknown || len(noted.noted) > 0 {
		t.Errorf("after it was forgotten: %d", got)
	}
}
