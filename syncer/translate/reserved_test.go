package translate

import "testing"

func TestConfigMapNames(t *testing.T) {
	tests := map[string]struct{ tenant, super string }{
		"an ordinary name is kept":                      {"settings", "settings"},
		"an ordinary name with the same prefix is kept": {"tenant-settings", "tenant-settings"},
		"the root CA is renamed":                        {"kube-root-ca.crt", "tenant-kube-root-ca.crt"},
		"a name equal to the new name is renamed":       {"tenant-kube-root-ca.crt", "tenant-tenant-kube-root-ca.crt"},
		"and so on": {"tenant-tenant-kube-root-ca.crt", "tenant-tenant-tenant-kube-root-ca.crt"},
		"a name that only ends like the root CA's is kept": {"my-kube-root-ca.crt", "my-kube-root-ca.crt"},
		"a name that only begins like it is kept":          {"kube-root-ca.crt-2", "kube-root-ca.crt-2"},
		"the prefix alone": {"tenant-", "tenant-"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := SuperConfigMapName(tt.tenant); got != tt.super {
				t.Errorf("SuperConfigMapName(%q) = %q, want %q", tt.tenant, got, tt.super)
			}
			if got := TenantConfigMapName(tt.super); got != tt.tenant {
				t.Errorf("TenantConfigMapName(%q) = %q, want %q", tt.super, got, tt.tenant)
			}
		})
	}
}

func FuzzConfigMapNames(f *testing.F) {
	f.Add("settings", "tenant-settings")
	f.Add("kube-root-ca.crt", "tenant-kube-root-ca.crt")
	f.Add("tenant-tenant-kube-root-ca.crt", "tenant-")
	f.Fuzz(func(t *testing.T, a, b string) {
		superA, superB := SuperConfigMapName(a), SuperConfigMapName(b)
		if back := TenantConfigMapName(superA); back != a {
			t.Errorf("%q is synced down as %q and back as %q", a, superA, back)
		}
		if superA == rootCA {
			t.Errorf("%q takes the name of the super cluster's root CA", a)
		}
		if (a == b) != (superA == superB) {
			t.Errorf("%q and %q become %q and %q", a, b, superA, superB)
		}
		// Each name of the super cluster except that of its own root CA has a
		// name in the tenant.
		if a != rootCA && SuperConfigMapName(TenantConfigMapName(a)) != a {
			t.Errorf("the super cluster's %q is synced up as %q and down as %q",
				a, TenantConfigMapName(a), SuperConfigMapName(TenantConfigMapName(a)))
		}
	})
}
