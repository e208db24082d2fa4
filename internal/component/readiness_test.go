package component

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
)

func TestReadiness(t *testing.T) {
	open, done := make(chan struct{}), make(chan struct{})
	close(done)
	forbidden := errors.New("forbidden")
	held := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	tests := map[string]struct {
		readiness readiness
		want      error
	}{
		"starts":                               {readiness{elected: open, synced: open}, errNotStarted},
		"works, and its caches have not":       {readiness{elected: done, synced: open}, errNotSynced},
		"works, and its caches have synced":    {readiness{elected: done, synced: done}, nil},
		"stands by for another":                {readiness{elected: open, synced: open, held: held(nil)}, nil},
		"stands by for none":                   {readiness{elected: open, synced: open, held: held(errNoHolder)}, errNoHolder},
		"cannot read the Lease":                {readiness{elected: open, synced: open, held: held(forbidden)}, forbidden},
		"is the leader, which asks for none":   {readiness{elected: done, synced: done, held: held(forbidden)}, nil},
		"is the leader, and has still to sync": {readiness{elected: done, synced: open, held: held(nil)}, errNotSynced},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.readiness.check(httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
