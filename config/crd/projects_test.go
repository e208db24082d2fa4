package crd

import (
	"fmt"
	"strings"
	"testing"
)

func claim(name, spec string) string {
	return fmt.Sprintf("{apiVersion: tenancy.x-k8s.io/v1alpha1, kind: ProjectClaim, metadata: {name: %s}, spec: %s}", name, spec)
}

// TestNamesOfProjects: a claim takes the names that an alias can have, and no
// others.
func TestNamesOfProjects(t *testing.T) {
	const spec = "{template: small, requester: jane}"
	claims, aliases := newChecker(t, "projectclaims"), newChecker(t, "virtualclusters")
	for name, want := range map[string]string{
		"shop": "", "shop-1": "", "shop-0a1b2c": "", "1": "", strings.Repeat("a", 63): "",
		"shop.example": "must be a DNS label", strings.Repeat("a", 64): "must be a DNS label", "a-": "must be a DNS label",
		"system": "is a name of the gateway", "projects": "is a name of the gateway",
		"team-0a1b2c-red": "has the form of a cluster key", "team-a-0a1b2c-red-1": "has the form of a cluster key",
	} {
		t.Run(name, func(t *testing.T) {
			quoted := fmt.Sprintf("%q", name)
			expect(t, claims.validate(claims.read(t, claim(quoted, spec)), nil), want)
			wrong := aliases.validate(aliases.read(t, virtualCluster("red", "{alias: "+quoted+"}")), nil)
			if (len(wrong) == 0) != (want == "") {
				t.Errorf("as an alias: %v", wrong)
			}
		})
	}
	for name, tc := range map[string]struct{ old, spec, want string }{
		"kept":              {spec, spec, ""},
		"another requester": {spec, "{template: small, requester: eve}", "spec is immutable"},
		"another template":  {spec, "{template: large, requester: jane}", "spec is immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			old := claims.read(t, claim("shop", tc.old))
			expect(t, claims.validate(claims.read(t, claim("shop", tc.spec)), old), tc.want)
		})
	}
}
