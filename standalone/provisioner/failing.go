package provisioner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// failingControllers remembers which controllers of a control plane do not
// work.
type failingControllers struct {
	mu       sync.Mutex
	names    []string
	reported provisioner.Controllers
}

// observe reports whether other controllers fail than before.
func (f *failingControllers) observe(failing map[string]error) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := slices.Sorted(maps.Keys(failing))
	if slices.Equal(names, f.names) {
		return false
	}
	f.names = names
	described := make([]string, 0, len(names))
	for _, name := range names {
		described = append(described, fmt.Sprintf("%s: %v", name, failing[name]))
	}
	f.reported.Failing = strings.Join(described, "; ")
	return true
}

// report returns the controllers that fail.
func (f *failingControllers) report() *provisioner.Controllers {
	f.mu.Lock()
	defer f.mu.Unlock()
	reported := f.reported
	return &reported
}
