package main

import (
	"bytes"
	"fmt"
	"io"
)

// console is the progress that a developer reads.
type console struct{ io.Writer }

// sayf writes a line. That it cannot be written is nothing to stop for.
func (c console) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(c, format+"\n", args...)
}

// progress counts what ginkgo says of specs that ended, a dot for each, and
// says how many there are.
type progress struct {
	out      console
	done, of int
}

// Write counts. It does not fail.
func (p *progress) Write(said []byte) (int, error) {
	const often = 8
	before := p.done
	p.done += bytes.Count(said, []byte("•"))
	if p.done/often > before/often {
		p.out.sayf("  %d of %d", p.done, p.of)
	}
	return len(said), nil
}
