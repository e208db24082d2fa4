package pending

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReasonBlocked is the reason of the event on an object that waits for another one.
const ReasonBlocked = "SyncBlocked"

// BlockedAfter is how long an object waits for another one before the tenant is told: objects that depend on each other are
// created at about the same time, in any order.
const BlockedAfter = 10 * time.Second

// BlockedError says that an object cannot be synced until another one exists. The event of the other one leads to the object
// again, so nothing is retried. Its text becomes an event on the tenant's object.
type BlockedError struct {
	// On is the kind and the name of the missing object, as the tenant names it.
	On string
}

// Error says what is missing.
func (e *BlockedError) Error() string {
	return "blocked on " + e.On + ", which does not exist or is not synced yet"
}

// IsBlocked reports whether an error is a [BlockedError], or wraps one.
func IsBlocked(err error) bool { return errors.As(err, new(*BlockedError)) }

// Blocks are the objects of a tenant that wait for others.
type Blocks struct{ *Set[Block] }

// Block is what one object waits for.
type Block struct {
	// On is the missing object.
	On string
	// Since is when the object began to wait.
	Since time.Time
	// Told is set when the tenant knows.
	Told bool
}

// NewBlocks makes the blocks of a tenant. It calls count when objects of a kind become blocked, or are no more.
func NewBlocks(count func(kind string, by int)) *Blocks { return &Blocks{newSet[Block](count)} }

// Put notes what an object waits for, and returns that with the time since when it waits for anything.
func (b *Blocks) Put(kind string, key client.ObjectKey, on string, now time.Time) Block {
	return b.put(kind, key, func(was Block) Block {
		switch {
		case was.Since.IsZero():
			return Block{On: on, Since: now}
		case was.On != on:
			return Block{On: on, Since: was.Since}
		}
		return was
	})
}
