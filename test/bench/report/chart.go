package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// Chart is a plot of lines over two axes.
type Chart struct {
	// Name is the end of the file's name, after the scenario's.
	Name  string
	Title string
	// X and Y are what the axes show.
	X, Y string
	// LogX gives each power of ten of X the same width.
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

// shares is how finely a distribution is drawn.
const shares = 200

// least is the shortest time that is drawn: less is measured with too much noise, and a logarithmic axis has no zero.
const least = 100 * time.Microsecond

// Distribution is the line of how large a share of times, in percent, is at most so many milliseconds. Times must not be empty.
func Distribution(name string, times []time.Duration) Line {
	sorted := slices.Sorted(slices.Values(times))
	line := Line{Name: name}
	for i := range shares + 1 {
		at := sorted[(len(sorted)-1)*i/shares]
		line.Points = append(line.Points, Point{measure.Milliseconds(max(at, least)), 100 * float64(i) / shares})
	}
	return line
}

// Growth is the line of how many of the moments have passed, over seconds since the beginning.
func Growth(name string, began time.Time, moments []time.Time) Line {
	line := Line{Name: name, Points: []Point{{0, 0}}}
	for i, at := range slices.SortedFunc(slices.Values(moments), time.Time.Compare) {
		line.Points = append(line.Points, Point{at.Sub(began).Seconds(), float64(i + 1)})
	}
	return line
}

// Sorted is a line of points in any order.
func Sorted(name string, points []Point) Line {
	return Line{Name: name, Points: slices.SortedFunc(slices.Values(points), func(a, b Point) int { return cmp.Compare(a.X, b.X) })}
}

// bounds are the least and the greatest value on an axis, of all lines.
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
