package measure

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for name, tc := range map[string]struct {
		sorted []time.Duration
		p      int
		want   time.Duration
	}{
		"the least":                      {hundred, 0, 1},
		"the median":                     {hundred, 50, 50},
		"the 99th of a hundred":          {hundred, 99, 99},
		"the greatest":                   {hundred, 100, 100},
		"the 99th of a few is the last":  {hundred[:10], 99, 10},
		"the median of two is the first": {hundred[:2], 50, 1},
		"one sample":                     {hundred[:1], 99, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Percentile(tc.sorted, tc.p); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":               {[]float64{4}, 4},
		"odd, not in order": {[]float64{9, 1, 3}, 3},
		"even":              {[]float64{9, 1, 3, 5}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			values := append([]float64(nil), tc.values...)
			if got := Median(values); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			for i := range values {
				if values[i] != tc.values[i] {
					t.Fatal("the argument was sorted in place")
				}
			}
		})
	}
}
