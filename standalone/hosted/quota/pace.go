package quota

import (
	"fmt"
	"time"
)

// checkPace charges an account for a write, and returns an error if a client
// exceeds the pace. The control plane's own writes are charged, but never
// rejected.
func (a *account) checkPace(bytes int64, purpose Purpose, now time.Time) error {
	fits := a.pace == nil || a.pace.AllowN(now, 1)
	bytesFit := a.bytePace == nil || a.bytePace.AllowN(now, int(min(bytes, int64(a.bytePace.Burst()))))
	switch {
	case purpose != Ordinary:
		return nil
	case !fits:
		return fmt.Errorf("this cluster writes more than %d times a second: try again later", a.limits.WritesPerSecond)
	case !bytesFit:
		return fmt.Errorf("this cluster writes more than %s a second: try again later", size(a.limits.WriteBytesPerSecond))
	default:
		return nil
	}
}
