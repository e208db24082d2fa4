package converted

import "testing"

func TestAudiences(t *testing.T) {
	const key = "team-0a1b2c-red"
	for tenant, super := range map[string]string{
		ClusterAudience: "converted.tenancy.x-k8s.io/team-0a1b2c-red",
		"vault":         "converted.tenancy.x-k8s.io/team-0a1b2c-red/vault",
		"https://a/b":   "converted.tenancy.x-k8s.io/team-0a1b2c-red/https://a/b",
		"":              "converted.tenancy.x-k8s.io/team-0a1b2c-red/",
	} {
		if got := SuperAudience(key, tenant); got != super {
			t.Errorf("%q becomes %q, want %q", tenant, got, super)
		}
		if got, ok := TenantAudience(key, super); got != tenant || !ok {
			t.Errorf("%q becomes %q, %t, want %q", super, got, ok, tenant)
		}
	}
	for _, others := range []string{"https://kubernetes.default.svc", Audience(key + "-b"), Audience("team"), "", Audience(key) + "vault"} {
		if got, ok := TenantAudience(key, others); ok {
			t.Errorf("%q is the tenant's %q", others, got)
		}
	}
	for audience, want := range map[string]string{
		Audience(key): key, Audience(key) + "/vault": key, "https://kubernetes.default.svc": "", "": "", Audience(key) + "/": key, Audience(""): "",
	} {
		if got := OfAudience(audience); got != want {
			t.Errorf("%q is of %q, want %q", audience, got, want)
		}
	}
}
