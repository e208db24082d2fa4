package crd

import (
	"fmt"
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("{kind: User, name: user-%d}", i)
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range map[string]struct{ members, want string }{
		"UserAndGroup": {"{kind: User, name: jane}, {kind: Group, name: jane}", ""},
		"Twice":        {"{kind: User, name: jane}, {kind: User, name: jane}", "Duplicate value"},
		"NoName":       {`{kind: User, name: ""}`, "at least 1 chars"},
		"NoKind":       {"{name: jane}", "Required value"},
		"AnotherKind":  {"{kind: ServiceAccount, name: jane}", "Unsupported value"},
		"TooMany":      {strings.Join(many, ", "), "must have at most 100 items"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{members: ["+tc.members+"]}")), nil), tc.want)
		})
	}
}
