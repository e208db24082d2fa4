package networks

import (
	"errors"
	"slices"
	"testing"

	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

func usable() decision { return decision{usable: true} }

func TestTableNames(t *testing.T) {
	table := NewTable("default")
	for named, want := range map[string]string{"": "default", "vpc-1": "vpc-1"} {
		if got := table.Name(named); got != want {
			t.Errorf("%q is network %s, want %s", named, got, want)
		}
	}
}

func TestUse(t *testing.T) {
	table := NewTable("default")
	if _, err := table.Use("default"); !errors.As(err, new(*pending.WaitingError)) {
		t.Errorf("before the networks are known: %v", err)
	}
	table.set(map[string]decision{"default": usable(), "failed": {message: "no provider"}})
	release, err := table.Use("default")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := table.Use("failed"); !errors.As(err, new(*pending.WaitingError)) || err.Error() != "waiting for Network failed to be ready: no provider" {
		t.Errorf("a network that is not ready: %v", err)
	}
	blocked := &pending.BlockedError{}
	if _, err := table.Use("none"); !errors.As(err, &blocked) || blocked.On != "Network none" {
		t.Errorf("a network that does not exist: %v", err)
	}
}

// TestReleased: a network is released when it cannot be used any more and the
// last copy has been created, even if it has gone meanwhile.
func TestReleased(t *testing.T) {
	table := NewTable("default")
	released := func(want bool) {
		t.Helper()
		if got := table.released("a"); got != want {
			t.Errorf("the network is released: %t, want %t", got, want)
		}
	}
	released(false)
	table.set(map[string]decision{"a": usable()})
	released(false)
	release, err := table.Use("a")
	if err != nil {
		t.Fatal(err)
	}
	table.set(map[string]decision{"a": {}})
	released(false)
	table.set(nil)
	released(false)
	if _, err := table.Use("a"); !errors.As(err, new(*pending.BlockedError)) {
		t.Errorf("a network that is gone: %v", err)
	}
	release()
	release()
	released(true)
	if len(table.networks) != 0 {
		t.Errorf("the table keeps %v", table.networks)
	}
}

func TestChanged(t *testing.T) {
	table := NewTable("default")
	for _, step := range []struct {
		name      string
		decisions map[string]decision
		want      []string
	}{
		{"first", map[string]decision{"a": usable(), "b": {message: "x"}}, []string{"a", "b"}},
		{"the same", map[string]decision{"a": usable(), "b": {message: "x"}}, nil},
		{"another message", map[string]decision{"a": {usable: true, message: "y"}, "b": {message: "y"}}, []string{"b"}},
		{"ready", map[string]decision{"a": usable(), "b": usable()}, []string{"b"}},
		{"gone", map[string]decision{"b": usable()}, []string{"a"}},
		{"new", map[string]decision{"a": usable(), "b": usable()}, []string{"a"}},
	} {
		got := table.set(step.decisions)
		slices.Sort(got)
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: %v have changed, want %v", step.name, got, step.want)
		}
	}
}
