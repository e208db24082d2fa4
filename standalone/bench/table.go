package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// table has the figures of all runs.
type table struct{ rows []*row }

// row is a figure, with its value in each run.
type row struct {
	name, unit string
	values     []float64
}

// add adds a value to the row of that name.
func (t *table) add(name, unit string, values ...float64) {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.name == name })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &row{name: name, unit: unit})
	}
	t.rows[i].values = append(t.rows[i].values, values...)
}

// markdown returns the table in Markdown.
func (t *table) markdown() string {
	var out strings.Builder
	out.WriteString("| figure | unit | min | median | max | values |\n|---|---|---|---|---|---|\n")
	for _, r := range t.rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %d |\n", r.name, r.unit,
			number(slices.Min(r.values)), number(measure.Median(r.values)), number(slices.Max(r.values)), len(r.values))
	}
	return out.String()
}

// number formats a value with three significant digits, or with all its integer
// digits.
func number(v float64) string {
	if v >= 100 || v <= -100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
