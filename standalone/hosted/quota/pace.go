package quota

import (
	"fmt"
	"time"
)

// checkPace charges an account for a write, and returns an error if a client
// exceeds the pace. The control plane's own writes are charged, but never
// rejected.
func (a *account) checkPace(bytes int64, purpose Purpose, now time.Time) error {
	if a.pace == nil || a.pace.AllowN(now, int(min(bytes, int64(a.pace.Burst())))) || purpose != Ordinary {
		return nil
	}
	return fmt.Errorf("this cluster writes more than %s a second: try again later", size(a.limits.WriteBytesPerSecond))
}
