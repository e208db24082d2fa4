package crd

import (
	"strings"
	"testing"
)

func TestAlias(t *testing.T) {
	cases := map[string]struct{ spec, want string }{
		"None":              {`{}`, ""},
		"Label":             {`{alias: shop-1}`, ""},
		"LooksLikeAHash":    {`{alias: shop-0a1b2c}`, ""},
		"Empty":             {`{alias: ""}`, "at least 1 chars"},
		"Dots":              {`{alias: shop.example}`, "should match"},
		"Capitals":          {`{alias: Shop}`, "should match"},
		"Slash":             {`{alias: a/b}`, "should match"},
		"TooLong":           {`{alias: ` + strings.Repeat("a", 64) + `}`, "may not be more than 63"},
		"System":            {`{alias: system}`, "alias is a name of the gateway"},
		"Projects":          {`{alias: projects}`, "alias is a name of the gateway"},
		"ClusterKey":        {`{alias: team-0a1b2c-red}`, "alias has the form of a cluster key"},
		"ClusterKeyOfADash": {`{alias: team-a-0a1b2c-red-1}`, "alias has the form of a cluster key"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", tc.spec)), nil), tc.want)
		})
	}
	for name, tc := range map[string]struct{ old, spec, want string }{
		"Added":   {`{}`, `{alias: shop}`, ""},
		"Kept":    {`{alias: shop}`, `{alias: shop}`, ""},
		"Changed": {`{alias: shop}`, `{alias: store}`, "alias is immutable"},
		"Removed": {`{alias: shop}`, `{}`, "alias cannot be removed"},
	} {
		t.Run(name, func(t *testing.T) {
			old := check.read(t, virtualCluster("red", tc.old))
			expect(t, check.validate(check.read(t, virtualCluster("red", tc.spec)), old), tc.want)
		})
	}
}
