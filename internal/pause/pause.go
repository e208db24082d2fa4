// Package pause waits in loops that end with a context.
package pause

import (
	"context"
	"time"
)

// For waits for a duration, and reports whether ctx has not ended meanwhile.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
