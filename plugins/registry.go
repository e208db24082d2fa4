package plugins

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Registry holds the plugins that are built into a program. The zero value is
// empty and ready to use.
type Registry struct {
	mu   sync.Mutex
	byID map[string]Registration
}

// Register adds a plugin.
func (r *Registry) Register(registration Registration) error {
	if wrong := validation.IsDNS1123Label(registration.ID); len(wrong) > 0 {
		return fmt.Errorf("plugin ID %q: %s", registration.ID, strings.Join(wrong, "; "))
	}
	if registration.InitFn == nil {
		return fmt.Errorf("plugin %s has no InitFn", registration.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byID[registration.ID]; taken {
		return fmt.Errorf("two plugins have the ID %s: give one of them another", registration.ID)
	}
	if r.byID == nil {
		r.byID = map[string]Registration{}
	}
	r.byID[registration.ID] = registration
	return nil
}

// List returns all plugins, including disabled ones, in the order of their IDs.
func (r *Registry) List() []Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Registration, 0, len(r.byID))
	for _, registration := range r.byID {
		all = append(all, registration)
	}
	slices.SortFunc(all, func(a, b Registration) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Chosen returns the plugins with the given IDs in the order of their IDs, or
// all that are not disabled if ids is empty.
func (r *Registry) Chosen(ids ...string) ([]Registration, error) {
	var chosen []Registration
	var known []string
	for _, registration := range r.List() {
		known = append(known, registration.ID)
		asked := slices.Contains(ids, registration.ID)
		switch {
		case asked && registration.Disable:
			return nil, fmt.Errorf("plugin %s is disabled in this program", registration.ID)
		case asked, len(ids) == 0 && !registration.Disable:
			chosen = append(chosen, registration)
		}
	}
	var missing []error
	for _, id := range ids {
		if !slices.Contains(known, id) {
			missing = append(missing, fmt.Errorf("plugin %q is not in this program, which has %s", id, strings.Join(known, ", ")))
		}
	}
	return chosen, errors.Join(missing...)
}
