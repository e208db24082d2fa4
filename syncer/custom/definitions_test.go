package custom

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// read counts requests for a definition.
type read struct {
	client.Reader
	asked int
	err   error
}

func (r *read) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	r.asked++
	obj.SetName(key.Name)
	return r.err
}

func TestDefinitionsAreReadOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxAge = 30 * time.Second
		var d definitions
		from := &read{err: errors.New("not there")}
		get := func(name string, wantErr error, wantAsked int) {
			t.Helper()
			got, err := d.get(t.Context(), from, name, maxAge)
			if !errors.Is(err, wantErr) || err == nil && got.Name != name {
				t.Errorf("got %v, %v; want %s, %v", got, err, name, wantErr)
			}
			if from.asked != wantAsked {
				t.Errorf("asked %d times, want %d", from.asked, wantAsked)
			}
		}
		// A missing definition is read each time: an admin may be about to add
		// it.
		get("widgets.example.com", from.err, 1)
		get("widgets.example.com", from.err, 2)
		from.err = nil
		get("widgets.example.com", nil, 3)
		get("widgets.example.com", nil, 3)
		get("gadgets.example.com", nil, 4)
		time.Sleep(maxAge)
		get("widgets.example.com", nil, 4)
		time.Sleep(time.Second)
		get("widgets.example.com", nil, 5)
		// A definition that was deleted is not remembered.
		time.Sleep(2 * maxAge)
		from.err = errors.New("gone")
		get("widgets.example.com", from.err, 6)
	})
}
