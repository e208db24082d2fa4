package syncdown

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// rule is one line of the specification of decide: what is done about the pairs
// that it matches.
type rule struct {
	// tenant and super are absent, present, deleting, or any.
	tenant, super string
	// when lists what must hold: names of the conditions below, with "not "
	// before those that must not.
	when string
	do   action
}

// rules are the specification: the first that matches an observation counts.
// The states of both sides are in columns, so that gaps and contradictions show.
var rules = []rule{
	// The super cluster holds nothing.
	{"absent", "absent", "", nothing},
	{"any", "absent", "not wanted", nothing},
	{"deleting", "absent", "mirrored, finalized", nothing}, // its finalizers keep it
	{"any", "absent", "mirrored, started", finalizeTenant}, // a pod runs once
	{"deleting", "absent", "mirrored", finalizeTenant},     // what never ran need not end first
	{"any", "absent", "", create},

	// A foreign object has the name.
	{"absent", "any", "foreign", nothing},
	{"any", "any", "foreign, not wanted", nothing},
	{"any", "any", "foreign", conflict},

	// A copy takes longer to end than the tenant gives it.
	{"any", "deleting", "mirrored, shortened", deleteSuper}, // once more, with less time

	// A copy is on its way out and stays so, whatever the tenant has.
	{"absent", "deleting", "", nothing},
	{"any", "deleting", "not wanted", nothing},
	{"any", "deleting", "not same", nothing},

	// A copy has no reason to be.
	{"absent", "present", "", deleteSuper},
	{"any", "present", "not wanted", deleteSuper},
	{"any", "present", "not same", deleteSuper},

	// Both sides hold the object, and its copy is what runs: an end on either
	// side is the end on both.
	{"present", "deleting", "mirrored", deleteTenant},
	{"deleting", "present", "mirrored", deleteSuper},
	{"any", "any", "mirrored", update},

	// Both sides hold the object, and the tenant's is what counts.
	{"any", "deleting", "", nothing}, // created again when it is gone
	{"any", "present", "", update},
}

var (
	presences  = map[session.Presence]string{session.Absent: "absent", session.Present: "present", session.Deleting: "deleting"}
	conditions = map[string]func(observation) bool{
		"wanted":    func(p observation) bool { return p.wanted },
		"same":      func(p observation) bool { return p.same },
		"foreign":   func(p observation) bool { return p.foreign },
		"mirrored":  func(p observation) bool { return p.mirrored },
		"started":   func(p observation) bool { return p.started },
		"shortened": func(p observation) bool { return p.shortened },
		"finalized": func(p observation) bool { return p.finalized },
	}
)

func (r rule) matches(t *testing.T, p observation) bool {
	t.Helper()
	if r.tenant != "any" && r.tenant != presences[p.tenant] || r.super != "any" && r.super != presences[p.super] {
		return false
	}
	if r.when == "" {
		return true
	}
	for condition := range strings.SplitSeq(r.when, ", ") {
		name, not := strings.CutPrefix(condition, "not ")
		holds, ok := conditions[name]
		if !ok {
			t.Fatalf("rule %+v: no condition is called %q", r, name)
		}
		if holds(p) == not {
			return false
		}
	}
	return true
}

// allPairs are all combinations, even those that judge never makes.
func allPairs() []observation {
	var all []observation
	sides := []session.Presence{session.Absent, session.Present, session.Deleting}
	for _, tenant := range sides {
		for _, super := range sides {
			for bits := range 1 << 7 {
				all = append(all, observation{
					tenant: tenant, super: super,
					wanted: bits&1 != 0, same: bits&2 != 0, foreign: bits&4 != 0, mirrored: bits&8 != 0, started: bits&16 != 0,
					shortened: bits&32 != 0, finalized: bits&64 != 0,
				})
			}
		}
	}
	return all
}

func TestDecideFollowsTheRules(t *testing.T) {
	used := make([]int, len(rules))
next:
	for _, p := range allPairs() {
		for i, r := range rules {
			if !r.matches(t, p) {
				continue
			}
			used[i]++
			if got := decide(p); got != r.do {
				t.Errorf("%s: %v, want %v, by the rule %+v", p, got, r.do, r)
			}
			continue next
		}
		t.Errorf("%s: no rule says what to do", p)
	}
	for i, n := range used {
		if n == 0 {
			t.Errorf("the rule %+v is never reached", rules[i])
		}
	}
}

func TestDecideKeepsItsPromises(t *testing.T) {
	promises := map[string]func(p observation, a action) bool{
		"what exists is not created": func(p observation, a action) bool {
			return a != create || p.super == session.Absent
		},
		"nothing is created or changed that the tenant does not have": func(p observation, a action) bool {
			return p.tenant != session.Absent || a == nothing || a == deleteSuper
		},
		"nothing is created or changed that does not belong down": func(p observation, a action) bool {
			return p.wanted || a == nothing || a == deleteSuper
		},
		"a mirrored object that started is never created again": func(p observation, a action) bool {
			return a != create || !p.mirrored || !p.started
		},
		"nothing is changed or deleted that is not the tenant's": func(p observation, a action) bool {
			return !p.foreign || p.super == session.Absent || a == nothing || a == conflict
		},
		"a conflict is a foreign object": func(p observation, a action) bool {
			return a != conflict || p.foreign && p.super != session.Absent
		},
		"a copy without a tenant's object goes": func(p observation, a action) bool {
			return p.tenant != session.Absent || p.super != session.Present || p.foreign || a == deleteSuper
		},
		"a copy of an earlier object goes, and is not shown as this one's": func(p observation, a action) bool {
			return p.super == session.Absent || p.foreign || p.same || a == deleteSuper || p.super == session.Deleting && a == nothing
		},
		"what is being deleted is not deleted again, but to hurry": func(p observation, a action) bool {
			return (a != deleteSuper || p.super == session.Present || p.shortened) && (a != deleteTenant || p.tenant == session.Present)
		},
		"only a copy of the tenant's that lives and dies with its object is shortened": func(p observation, a action) bool {
			return a != deleteSuper || p.super != session.Deleting || p.shortened && p.mirrored && !p.foreign
		},
		"only what exists is updated": func(p observation, a action) bool {
			return a != update || p.tenant != session.Absent && p.super != session.Absent && p.same && p.wanted && !p.foreign
		},
		"the tenant's objects are deleted only if mirrored, and only after or with their copies": func(p observation, a action) bool {
			switch a {
			case deleteTenant:
				return p.mirrored && p.super == session.Deleting && p.same
			case finalizeTenant:
				return p.mirrored && p.super == session.Absent && p.tenant != session.Absent
			default:
				return true
			}
		},
	}
	for name, holds := range promises {
		t.Run(name, func(t *testing.T) {
			for _, p := range allPairs() {
				if a := decide(p); !holds(p, a) {
					t.Errorf("%s: %v", p, a)
				}
			}
		})
	}
}

// TestDecideConverges does what is decided, lets deletions end, and expects
// that soon nothing is left to be done and that both sides are as they should
// be.
func TestDecideConverges(t *testing.T) {
	for _, start := range allPairs() {
		if !start.possible() {
			continue
		}
		p, history := start, []string{start.String()}
		for steps := 0; ; steps++ {
			if steps > 6 {
				t.Errorf("does not come to rest:\n%s", strings.Join(history, "\n"))
				break
			}
			a := decide(p)
			next := p.after(a)
			if next == p {
				if !p.settled(a) {
					t.Errorf("comes to rest with %v, where it should not:\n%s", a, strings.Join(history, "\n"))
				}
				break
			}
			history = append(history, fmt.Sprintf("%v: %s", a, next))
			p = next
		}
	}
}

// possible reports whether observe can return an observation.
func (p observation) possible() bool {
	switch {
	case p.super == session.Absent && (p.same || p.foreign), p.foreign && p.same, p.started && !p.mirrored,
		p.tenant == session.Absent && (p.wanted || p.same || p.started),
		p.finalized && (!p.mirrored || p.tenant != session.Deleting),
		p.shortened && (!p.mirrored || p.tenant == session.Present && p.same || p.super != session.Deleting):
		return false
	}
	return true
}

// after is an observation after an action, or, where there is nothing to do
// about it, after a deletion has ended.
func (p observation) after(a action) observation {
	switch a {
	case create:
		p.super, p.same, p.started = session.Present, true, p.mirrored
	case deleteSuper:
		p.super, p.shortened = session.Deleting, false
	case deleteTenant:
		p.tenant = session.Deleting
	case finalizeTenant:
		p.tenant, p.wanted, p.started, p.finalized = session.Absent, false, false, false
	case nothing, update, conflict:
		switch {
		case p.super == session.Deleting:
			p.super, p.same, p.foreign, p.shortened = session.Absent, false, false, false
		case p.tenant == session.Deleting && (!p.mirrored || p.finalized):
			p.tenant, p.wanted, p.same, p.started, p.finalized = session.Absent, false, false, false, false
		}
	}
	return p
}

// settled reports whether an observation for which this is decided may stay as it
// is.
func (p observation) settled(a action) bool {
	switch {
	case p.super == session.Absent:
		return a == nothing && (p.tenant == session.Absent || !p.wanted)
	case p.foreign && p.tenant != session.Absent && p.wanted:
		return a == conflict
	case p.foreign:
		return a == nothing
	}
	return a == update && p.tenant == session.Present && p.super == session.Present && p.same && p.wanted
}

func (p observation) String() string {
	var held []string
	for _, name := range []string{"wanted", "same", "foreign", "mirrored", "started", "shortened", "finalized"} {
		if conditions[name](p) {
			held = append(held, name)
		}
	}
	return fmt.Sprintf("tenant %s, super %s [%s]", presences[p.tenant], presences[p.super], strings.Join(held, " "))
}

func (a action) String() string {
	return [...]string{"nothing", "create", "update", "deleteSuper", "deleteTenant", "finalizeTenant", "conflict"}[a]
}
