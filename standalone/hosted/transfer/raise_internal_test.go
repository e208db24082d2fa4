package transfer

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestOutrun(t *testing.T) {
	for name, test := range map[string]struct {
		last, gap int64
		want      bool
	}{
		"the first gap":  {0, 900_000, false},
		"it shrinks":     {10_000, 4_000, false},
		"by a quarter":   {10_000, 7_500, false},
		"by less":        {10_000, 7_501, true},
		"it grows":       {10_000, 11_000, true},
		"a small margin": {3_000, 2_900, true},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(outrun(test.last, test.gap)).To(Equal(test.want)) })
	}
}
