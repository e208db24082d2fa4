package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	for name, tc := range map[string]struct {
		ends time.Duration // of the context
		want bool
		took time.Duration
	}{
		"the context lasts":           {2 * time.Minute, true, time.Minute},
		"the context ends meanwhile":  {time.Second, false, time.Second},
		"the context ended before it": {0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.ends)
				defer cancel()
				began := time.Now()
				if got := For(ctx, time.Minute); got != tc.want {
					t.Errorf("the context has not ended: %t, want %t", got, tc.want)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
			})
		})
	}
}
