package plugins

import (
	"context"
	"errors"
	"testing"
)

func TestTenantsAreLockedEachByItself(t *testing.T) {
	var locks TenantLocks
	ended, end := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	end(why)
	if err := locks.Of("red").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := locks.Of("red").Lock(ended); !errors.Is(err, why) {
		t.Errorf("a tenant that is locked: %v", err)
	}
	if err := locks.Of("blue").Lock(ended); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	locks.Of("red").Unlock()
	if err := locks.Of("red").Lock(ended); err != nil {
		t.Errorf("a tenant that is not locked any more: %v", err)
	}
}
