// Package measure turns samples into figures, and measures the resource usage
// of processes.
package measure

import (
	"slices"
	"time"
)

// Percentile returns the smallest sample that at least p percent of the samples
// do not exceed (nearest rank). The samples must be sorted. It returns 0 for no
// samples, which happens at tiny sizes, when no pod qualifies for a figure.
func Percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// Median returns the middle value, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Milliseconds converts a duration to milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
