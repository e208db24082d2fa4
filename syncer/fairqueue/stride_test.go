package fairqueue

import (
	"math"
	"testing"
)

// TestStride expects the usual weights to share exactly, all weights of the API
// within two thousandths, and no stride to be 0.
func TestStride(t *testing.T) {
	for weight := int32(1); weight <= 1000; weight++ {
		l := lane[string]{config: config{weight: weight}}
		lost := round - int64(weight)*l.stride()
		if lost < 0 || lost*1000 > 2*round || (weight <= 16 && lost > 0) {
			t.Errorf("weight %d times %d is %d less than a round", weight, l.stride(), lost)
		}
	}
	for _, weight := range []int32{round - 1, round, round + 1, math.MaxInt32} {
		l := lane[string]{config: config{weight: weight}}
		if got := l.stride(); got != 1 {
			t.Errorf("stride %d of weight %d, want 1", got, weight)
		}
	}
}
