package bench

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints the progress of the program.
type progress struct {
	out   io.Writer
	began time.Time

	mu       sync.Mutex
	scenario string
}

// enter sets the scenario of the following lines.
func (p *progress) enter(scenario string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scenario = scenario
}

// sayf prints a line.
func (p *progress) sayf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%6.1f s  %-11s %s\n", time.Since(p.began).Seconds(), p.scenario, fmt.Sprintf(format, args...))
}
