package report

import "math"

// axis maps values to pixels.
type axis struct {
	low, high  float64 // values at the ends
	from, upTo float64 // pixels at the ends
	log        bool
	ticks      []float64
}

// wanted is the approximate number of ticks of an axis.
const wanted = 6

// newAxis returns an axis whose ends are round numbers around low and high.
func newAxis(low, high, from, upTo float64, log bool) axis {
	a := axis{from: from, upTo: upTo, log: log}
	if log {
		a.ticks = decades(low, high)
	} else {
		a.ticks = steps(min(low, 0), high)
	}
	a.low, a.high = a.ticks[0], a.ticks[len(a.ticks)-1]
	return a
}

// at returns the pixel of a value.
func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	return a.from + (v-low)/(high-low)*(a.upTo-a.from)
}

// steps returns multiples of 1, 2 or 5 times a power of ten, the first at or
// below low, the last at or above high.
func steps(low, high float64) []float64 {
	if high <= low {
		high = low + 1
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/wanted)))
	for _, factor := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (high-low)/step > wanted {
			step *= factor
		}
	}
	first, last := math.Floor(low/step), math.Ceil(high/step)
	var ticks []float64
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// decades returns 1, 2 and 5 times powers of ten, from the last at or below low
// to the first at or above high. Both must be positive.
func decades(low, high float64) []float64 {
	var ticks []float64
	for power := math.Floor(math.Log10(low)); ; power++ {
		for _, factor := range []float64{1, 2, 5} {
			tick := factor * math.Pow(10, power)
			if tick <= low {
				ticks = ticks[:0]
			}
			ticks = append(ticks, tick)
			if tick >= high && len(ticks) > 1 {
				return ticks
			}
		}
	}
}
