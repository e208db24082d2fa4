package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

// whereabouts is where the data of a control plane is, as the stores themselves
// know.
type whereabouts struct {
	// at is the store with the data; empty if none has any.
	at string
	// interrupted: a move has stopped the control plane.
	interrupted bool
	// unused are the other stores, with data that is not used.
	unused []string
	// attempt is the last one that a store knows.
	attempt int64
}

// deduce returns where the data is by what stores have of it. Both stores of a move
// can have all of it, until one of them is opened: the wanted one is preferred then.
func deduce(states map[string]transfer.State, want string) (whereabouts, error) {
	var found whereabouts
	var inUse, complete, partial []string
	for _, store := range slices.Sorted(maps.Keys(states)) {
		state := states[store]
		found.attempt = max(found.attempt, state.Attempt)
		switch {
		case state.InUse():
			inUse = append(inUse, store)
		case state.Empty:
		case state.Complete:
			complete = append(complete, store)
		default:
			partial = append(partial, store)
		}
	}
	switch {
	case len(inUse) > 1:
		return found, fmt.Errorf("ControlPlaneStores %s all have data of the control plane: "+
			"write the name of the right one to status.store of its HostedControlPlane", strings.Join(inUse, ", "))
	case len(inUse) == 1:
		found.at = inUse[0]
	case len(complete) > 0:
		found.interrupted = true
		found.at = slices.MaxFunc(complete, func(a, b string) int {
			return cmp.Or(cmp.Compare(states[a].Attempt, states[b].Attempt), preference(a, want)-preference(b, want))
		})
	case len(partial) > 0:
		return found, fmt.Errorf("ControlPlaneStores %s have a part of the data of the control plane, and none has all of it: "+
			"the store that it was moved from is missing", strings.Join(partial, ", "))
	}
	found.unused = slices.DeleteFunc(slices.Concat(complete, partial), func(store string) bool { return store == found.at })
	return found, nil
}

func preference(store, want string) int {
	if store == want {
		return 1
	}
	return 0
}
