package provider

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// longest is the maximum length of a problem in bytes: many have to fit into
// the message of a condition.
const longest = 800

// problems are the parts of a tenant that cannot be synced, with the reasons.
// The zero value is ready to use.
type problems struct {
	mu    sync.Mutex
	about map[string]string
}

// set records a problem, or that it is solved if message is empty, and reports
// whether that is a change.
func (p *problems) set(about, message string) bool {
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "…"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.about[about] == message {
		return false
	}
	if message == "" {
		delete(p.about, about)
		return true
	}
	if p.about == nil {
		p.about = map[string]string{}
	}
	p.about[about] = message
	return true
}

// String returns all problems for the message of a condition; empty if there
// are none.
func (p *problems) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]string, 0, len(p.about))
	for _, about := range slices.Sorted(maps.Keys(p.about)) {
		all = append(all, about+": "+p.about[about])
	}
	return strings.Join(all, "; ")
}
