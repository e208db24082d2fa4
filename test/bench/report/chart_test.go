package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		low, high float64
		log       bool
		want      []float64
	}{
		"to ten":               {0, 10, false, []float64{0, 2, 4, 6, 8, 10}},
		"a share":              {0, 100, false, []float64{0, 20, 40, 60, 80, 100}},
		"ends that are uneven": {3, 47, false, []float64{0, 10, 20, 30, 40, 50}},
		"below zero":           {-3, 4, false, []float64{-4, -2, 0, 2, 4}},
		"nothing but zero":     {0, 0, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		"milliseconds":         {3, 60, true, []float64{2, 5, 10, 20, 50, 100}},
		"one value":            {5, 5, true, []float64{5, 10}},
		"below one":            {0.3, 0.8, true, []float64{0.2, 0.5, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAxis(tc.low, tc.high, 0, 100, tc.log)
			near := cmp.Comparer(func(a, b float64) bool { return max(a-b, b-a) < 1e-9 })
			if diff := cmp.Diff(tc.want, a.ticks, near); diff != "" {
				t.Fatal(diff)
			}
			if from, upTo := a.at(a.low), a.at(a.high); from != 0 || upTo != 100 {
				t.Errorf("the ends are at %v and %v", from, upTo)
			}
		})
	}
}

func TestAxisIsLogarithmic(t *testing.T) {
	a := newAxis(1, 100, 0, 100, true)
	if got := a.at(10); got < 49.9 || got > 50.1 {
		t.Errorf("10 is at %v between 1 and 100, want the middle", got)
	}
}

func TestDistribution(t *testing.T) {
	line := Distribution("down", []time.Duration{9e6, time.Nanosecond, 3e6})
	first, last := line.Points[0], line.Points[len(line.Points)-1]
	if first != (Point{0.1, 0}) || last != (Point{9, 100}) {
		t.Errorf("it goes from %v to %v", first, last)
	}
	for i := range line.Points[1:] {
		if line.Points[i].X > line.Points[i+1].X || line.Points[i].Y > line.Points[i+1].Y {
			t.Fatalf("it falls after %v", line.Points[i])
		}
	}
}

func TestGrowth(t *testing.T) {
	began := time.Now()
	line := Growth("pods", began, []time.Time{began.Add(2 * time.Second), began.Add(time.Second)})
	if diff := cmp.Diff([]Point{{0, 0}, {1, 1}, {2, 2}}, line.Points); diff != "" {
		t.Error(diff)
	}
}

// TestSVG tests that a chart is XML, contains every text, and stays within its
// frame.
func TestSVG(t *testing.T) {
	c := &Chart{Title: "a < b & c", X: "ms", Y: "share, %", LogX: true, Lines: []Line{
		{"one", []Point{{0.5, 0}, {70, 100}}}, {"two", []Point{{2, 0}, {9, 100}}},
	}}
	var out strings.Builder
	if err := c.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	lines, texts := 0, ""
	for decoder := xml.NewDecoder(strings.NewReader(out.String())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts += string(token) + "|"
		case xml.StartElement:
			if token.Name.Local == "polyline" {
				lines++
				within(t, token)
			}
		}
	}
	if lines != 2 {
		t.Errorf("%d lines are drawn, want 2", lines)
	}
	for _, text := range []string{c.Title, c.X, c.Y, "one", "two"} {
		if !strings.Contains(texts, text+"|") {
			t.Errorf("no text %q", text)
		}
	}
}

func within(t *testing.T, line xml.StartElement) {
	t.Helper()
	for _, a := range line.Attr {
		if a.Name.Local != "points" {
			continue
		}
		for point := range strings.FieldsSeq(a.Value) {
			x, y, _ := strings.Cut(point, ",")
			px, errX := strconv.ParseFloat(x, 64)
			py, errY := strconv.ParseFloat(y, 64)
			if errX != nil || errY != nil || px < marginLeft || px > chartWidth-marginRight || py < marginTop || py > chartHeight-marginBottom {
				t.Errorf("the point %s is outside of the axes", point)
			}
		}
	}
}
