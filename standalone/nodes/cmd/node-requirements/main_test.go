package main

import (
	"errors"
	"strings"
	"testing"
)

// TestReport: building fails for what it needs itself, and --run for all.
func TestReport(t *testing.T) {
	building, running := errors.New("no busybox"), errors.Join(errors.New("no runc"), errors.New("no root"))
	const before, lacks = "Required before the real node can run here:\n", "This machine lacks what a real node needs:\n"
	for name, c := range map[string]struct {
		building, running error
		run               bool
		want              string
		code              int
	}{
		"everything is there":               {nil, nil, false, "", 0},
		"everything is there to run":        {nil, nil, true, "", 0},
		"it cannot be built":                {building, nil, false, lacks + "  no busybox\n", 1},
		"it can be built but not run":       {nil, running, false, before + "  no runc\n  no root\n", 0},
		"it can be built but must run":      {nil, running, true, lacks + "  no runc\n  no root\n", 1},
		"neither":                           {building, running, false, before + "  no runc\n  no root\n" + lacks + "  no busybox\n", 1},
		"neither, and it must run":          {building, running, true, lacks + "  no busybox\n  no runc\n  no root\n", 1},
		"it cannot be built and it can run": {building, nil, true, lacks + "  no busybox\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if code := report(&out, c.building, c.running, c.run); code != c.code || out.String() != c.want {
				t.Errorf("code %d, and it said\n%swant %d, and\n%s", code, &out, c.code, c.want)
			}
		})
	}
}
