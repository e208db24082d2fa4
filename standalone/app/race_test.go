//go:build race

package app

import "testing"

// skipWithRaceDetector skips a test that runs Kubernetes in its process:
// goroutines that end after a stop read klog's settings without a lock.
func skipWithRaceDetector(t *testing.T) {
	t.Helper()
	t.Skip("klog's settings are not guarded")
}
