package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		turn := newTurns(2)
		take := func(after time.Duration) (giveBack func()) {
			t.Helper()
			giveBack, err := turn.take(t.Context())
			if took := time.Since(began); err != nil || took != after {
				t.Errorf("the turn came after %s, %v; want %s", took, err, after)
			}
			return giveBack
		}
		first := take(0)
		take(0) // hangs
		first()
		first() // releases no turn of another tenant
		third := take(0)
		take(turnTime)
		fifth := take(turnTime)
		third() // is over
		fifth()
		take(turnTime)
		take(2 * turnTime)
		time.Sleep(time.Hour)
		if len(turn) > 0 {
			t.Errorf("%d turns are taken for ever", len(turn))
		}
	})
}

func TestATurnThatNobodyWaitsForAnyMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	turn := newTurns(1)
	giveBack, err := turn.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer giveBack()
	cancel()
	if _, err := turn.take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
