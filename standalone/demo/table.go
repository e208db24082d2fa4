package demo

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// row is one object of a tenant, and what it is in the super cluster.
type row struct {
	tenant, object, super, node, phase string
	took                               time.Duration
}

// writeTable writes rows under their headings.
func writeTable(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TENANT\tTENANT'S OBJECT\tIN THE SUPER CLUSTER\tNODE\tPHASE\tMS TO RUNNING")
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.tenant, r.object, r.super, orDash(r.node), orDash(r.phase), millis(r.took))
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}
