package app

import (
	"fmt"
	"io"
	"time"
)

// progress tells people how far the start is.
type progress struct {
	out     io.Writer
	started time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, started: time.Now()} }

// step tells what is there now, and when.
func (p *progress) step(what, detail string) {
	_, _ = fmt.Fprintf(p.out, "%6.1f s  %-14s %s\n", p.seconds(), what, detail)
}

// ready tells that everything is there.
func (p *progress) ready(kubeconfig string) {
	_, _ = fmt.Fprintf(p.out, "ready: kubeconfig %s, after %.1f s\n", kubeconfig, p.seconds())
}

func (p *progress) seconds() float64 { return time.Since(p.started).Seconds() }
