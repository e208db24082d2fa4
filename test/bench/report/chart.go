package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// Chart is a line chart.
type Chart struct {
	// Name is the last part of the file's name, after the scenario's.
	Name  string
	Title string
	// X and Y are the labels of the axes.
	X, Y string
	// LogX makes the X axis logarithmic.
	LogX  bool
	Lines []Line
}

// Line is a series of points, in the order of X.
type Line struct {
	Name   string
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// shares is the resolution of a distribution.
const shares = 200

// least is the shortest time in a chart: shorter ones are mostly noise, and a
// logarithmic axis has no zero.
const least = 100 * time.Microsecond

// Distribution returns the cumulative distribution of times: the share, in
// percent, of those up to each number of milliseconds. Times must not be empty.
func Distribution(name string, times []time.Duration) Line {
	sorted := slices.Sorted(slices.Values(times))
	line := Line{Name: name}
	for i := range shares + 1 {
		at := sorted[(len(sorted)-1)*i/shares]
		line.Points = append(line.Points, Point{measure.Milliseconds(max(at, least)), 100 * float64(i) / shares})
	}
	return line
}

// Growth returns the number of moments that have passed, by seconds since the
// start.
func Growth(name string, began time.Time, moments []time.Time) Line {
	line := Line{Name: name, Points: []Point{{0, 0}}}
	for i, at := range slices.SortedFunc(slices.Values(moments), time.Time.Compare) {
		line.Points = append(line.Points, Point{at.Sub(began).Seconds(), float64(i + 1)})
	}
	return line
}

// Sorted returns a line of unsorted points.
func Sorted(name string, points []Point) Line {
	return Line{Name: name, Points: slices.SortedFunc(slices.Values(points), func(a, b Point) int { return cmp.Compare(a.X, b.X) })}
}

// bounds returns the lowest and the highest value on an axis, of all lines.
func (c *Chart) bounds(of func(Point) float64) (low, high float64) {
	first := true
	for _, line := range c.Lines {
		for _, p := range line.Points {
			v := of(p)
			if first {
				low, high, first = v, v, false
			}
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}
