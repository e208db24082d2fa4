package patrol

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

const (
	// patrolShare is the part of the patrol's interval that rounds may take, of
	// all tenants together: so much of a core at most.
	patrolShare = 4
	// leastBudget is how long the patrol compares a tenant's objects in any
	// case.
	leastBudget = 10 * time.Millisecond
)

// budgetOf returns how long a round of the patrol may take for one of a number
// of tenants.
func budgetOf(interval time.Duration, tenants int) time.Duration {
	return max(interval/patrolShare/time.Duration(max(tenants, 1)), leastBudget)
}

// beat is the patrol's position in the objects of a tenant. Objects beyond a
// round's budget are compared in the next round, so that a tenant with many
// objects does not delay the others. The zero value is at the end.
type beat struct {
	// kinds are left to be compared, after keys of the kind of.
	kinds []*kinds.Kind
	of    *kinds.Kind
	keys  []client.ObjectKey
}

// ended reports whether all has been compared.
func (b *beat) ended() bool { return len(b.kinds) == 0 && len(b.keys) == 0 }

// next takes the next object to compare, or none if a kind has none. Keys are
// listed kind by kind.
func (b *beat) next(list func(*kinds.Kind) []client.ObjectKey) (of *kinds.Kind, key client.ObjectKey, ok bool) {
	if len(b.keys) == 0 {
		b.of, b.kinds = b.kinds[0], b.kinds[1:]
		b.keys = list(b.of)
	}
	if len(b.keys) == 0 {
		return nil, key, false
	}
	key, b.keys = b.keys[0], b.keys[1:]
	return b.of, key, true
}
