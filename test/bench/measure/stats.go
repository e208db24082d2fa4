// Package measure turns samples into figures, and asks the operating system what a process uses.
package measure

import (
	"slices"
	"time"
)

// Percentile is the smallest sample that p percent of all samples do not exceed (the nearest rank). The samples are
// sorted. Of no samples it is 0, as where all pods of a tiny size ended in the order that a figure does not count.
func Percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// Median is the middle of the values; of an even number of them, the middle of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Milliseconds is a duration as figures show it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
