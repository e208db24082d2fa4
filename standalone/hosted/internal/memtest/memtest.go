// Package memtest measures memory in tests.
package memtest

import "runtime"

// Heap returns the bytes of live objects.
func Heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // also what finalizers kept alive
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // far below the largest number
}
