package syncdown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// rule is one line of the specification of decide: what is done about the pairs that it matches.
type rule struct {
	// tenant and super are absent, present, deleting, or any.
	tenant, super string
	// when lists what must hold: names of the conditions below, with "not " before those that must not.
	when string
	do   action
}

// rules are the specification: the first that matches a pair counts. What lives in the tenant and what sits in the super
// cluster stand side by side, so that a gap or a contradiction shows.
var rules = []rule{
	// The super cluster holds nothing.
	{"absent", "absent", "", nothing},
	{"any", "absent", "not wanted", nothing},
	{"any", "absent", "mirrored, started", finish}, // a pod runs once
	{"deleting", "absent", "mirrored", finish},     // what never ran need not end first
	{"any", "absent", "", create},

	// Something that is nobody's copy has the name.
	{"absent", "any", "foreign", nothing},
	{"any", "any", "foreign, not wanted", nothing},
	{"any", "any", "foreign", conflict},

	// A copy takes longer to end than the tenant gives it.
	{"any", "deleting", "mirrored, hurried", remove}, // once more, with less time

	// A copy is on its way out and stays so, whatever the tenant has.
	{"absent", "deleting", "", nothing},
	{"any", "deleting", "not wanted", nothing},
	{"any", "deleting", "not same", nothing},

	// A copy has no reason to be.
	{"absent", "present", "", remove},
	{"any", "present", "not wanted", remove},
	{"any", "present", "not same", remove},

	// Both sides hold the object, and its copy is what runs: an end on either side is the end on both.
	{"present", "deleting", "mirrored", retire},
	{"deleting", "present", "mirrored", remove},
	{"any", "any", "mirrored", update},

	// Both sides hold the object, and the tenant's is what counts.
	{"any", "deleting", "", nothing}, // made anew when it is gone
	{"any", "present", "", update},
}

var (
	presences  = map[session.Presence]string{session.Absent: "absent", session.Present: "present", session.Deleting: "deleting"}
	conditions = map[string]func(pair) bool{
		"wanted":   func(p pair) bool { return p.wanted },
		"same":     func(p pair) bool { return p.same },
		"foreign":  func(p pair) bool { return p.foreign },
		"mirrored": func(p pair) bool { return p.mirrored },
		"started":  func(p pair) bool { return p.started },
		"hurried":  func(p pair) bool { return p.hurried },
	}
)

func (r rule) matches(t *testing.T, p pair) bool {
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
func allPairs() []pair {
	var all []pair
	sides := []session.Presence{session.Absent, session.Present, session.Deleting}
	for _, tenant := range sides {
		for _, super := range sides {
			for bits := range 1 << 6 {
				all = append(all, pair{
					tenant: tenant, super: super,
					wanted: bits&1 != 0, same: bits&2 != 0, foreign: bits&4 != 0, mirrored: bits&8 != 0, started: bits&16 != 0,
					hurried: bits&32 != 0,
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
	promises := map[string]func(p pair, a action) bool{
		"what exists is not created": func(p pair, a action) bool {
			return a != create || p.super == session.Absent
		},
		"nothing is created or changed that the tenant does not have": func(p pair, a action) bool {
			return p.tenant != session.Absent || a == nothing || a == remove
		},
		"nothing is created or changed that does not belong down": func(p pair, a action) bool {
			return p.wanted || a == nothing || a == remove
		},
		"a mirrored object that started is never created again": func(p pair, a action) bool {
			return a != create || !p.mirrored || !p.started
		},
		"nothing is changed or deleted that is not the tenant's": func(p pair, a action) bool {
			return !p.foreign || p.super == session.Absent || a == nothing || a == conflict
		},
		"a conflict is somebody else's object": func(p pair, a action) bool {
			return a != conflict || p.foreign && p.super != session.Absent
		},
		"a copy without a tenant's object goes": func(p pair, a action) bool {
			return p.tenant != session.Absent || p.super != session.Present || p.foreign || a == remove
		},
		"a copy of an earlier object goes, and is not shown as this one's": func(p pair, a action) bool {
			return p.super == session.Absent || p.foreign || p.same || a == remove || p.super == session.Deleting && a == nothing
		},
		"what is being deleted is not deleted again, but to hurry": func(p pair, a action) bool {
			return (a != remove || p.super == session.Present || p.hurried) && (a != retire || p.tenant == session.Present)
		},
		"only a copy of the tenant's that lives and dies with its object is hurried": func(p pair, a action) bool {
			return a != remove || p.super != session.Deleting || p.hurried && p.mirrored && !p.foreign
		},
		"only what exists is updated": func(p pair, a action) bool {
			return a != update || p.tenant != session.Absent && p.super != session.Absent && p.same && p.wanted && !p.foreign
		},
		"the tenant's objects are deleted only if mirrored, and only after or with their copies": func(p pair, a action) bool {
			switch a {
			case retire:
				return p.mirrored && p.super == session.Deleting && p.same
			case finish:
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

// TestDecideConverges does what is decided, lets deletions end, and expects that soon nothing is left to be done and that both
// sides are as they should be.
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

// possible says whether judge can see a pair.
func (p pair) possible() bool {
	switch {
	case p.super == session.Absent && (p.same || p.foreign), p.foreign && p.same, p.started && !p.mirrored,
		p.tenant == session.Absent && (p.wanted || p.same || p.started),
		p.hurried && (!p.mirrored || p.tenant == session.Present && p.same || p.super != session.Deleting):
		return false
	}
	return true
}

// after is a pair after an action, or, where there is nothing to do about it, after a deletion has ended.
func (p pair) after(a action) pair {
	switch a {
	case create:
		p.super, p.same, p.started = session.Present, true, p.mirrored
	case remove:
		p.super, p.hurried = session.Deleting, false
	case retire:
		p.tenant = session.Deleting
	case finish:
		p.tenant, p.wanted, p.started = session.Absent, false, false
	case nothing, update, conflict:
		switch {
		case p.super == session.Deleting:
			p.super, p.same, p.foreign, p.hurried = session.Absent, false, false, false
		case p.tenant == session.Deleting && !p.mirrored:
			p.tenant, p.wanted, p.same = session.Absent, false, false
		}
	}
	return p
}

// settled says whether a pair for which this is decided may stay as it is.
func (p pair) settled(a action) bool {
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

func (p pair) String() string {
	var held []string
	for _, name := range []string{"wanted", "same", "foreign", "mirrored", "started", "hurried"} {
		if conditions[name](p) {
			held = append(held, name)
		}
	}
	return fmt.Sprintf("tenant %s, super %s [%s]", presences[p.tenant], presences[p.super], strings.Join(held, " "))
}

func (a action) String() string {
	return [...]string{"nothing", "create", "update", "remove", "retire", "finish", "conflict"}[a]
}

func TestHurried(t *testing.T) {
	m := kindstest.Rich().Erase().Down.Mirror
	going := func(seconds int64) *corev1.Pod {
		pod := withGrace(kindstest.Named("web"), seconds)
		pod.DeletionTimestamp = new(metav1.Now())
		return pod
	}
	copyOf := func(uid string, pod *corev1.Pod) *corev1.Pod {
		pod.Annotations = map[string]string{names.UID: uid}
		return pod
	}
	untimed := going(0)
	untimed.DeletionGracePeriodSeconds = nil
	for name, tc := range map[string]struct {
		tenant, super client.Object
		want          bool
	}{
		"less time than the copy has": {going(0), going(30), true},
		"as much":                     {going(30), going(30), false},
		"more than the policy allows, as the copy has":    {going(1 << 62), going(1 << 61), true},
		"the most that the policy allows":                 {going(1 << 62), going(3600), false},
		"less than none":                                  {going(-1), going(30), true},
		"less than none, which is a second":               {going(-1), going(1), false},
		"more":                                            {going(30), going(1), false},
		"the copy is not being deleted":                   {going(0), kindstest.Named("web"), false},
		"the tenant's is not":                             {kindstest.Named("web"), going(30), false},
		"there is no copy":                                {going(0), nil, false},
		"there is no tenant's object":                     {nil, going(30), false},
		"the tenant's has no time noted":                  {untimed, going(30), false},
		"the copy has no time noted":                      {going(0), untimed, false},
		"the tenant's ended by force":                     {nil, copyOf("forced", going(30)), true},
		"the tenant's ended by force, as did its copy":    {nil, copyOf("forced", going(0)), false},
		"the tenant's ended by force, and there is a new": {kindstest.Named("web"), copyOf("forced", going(30)), true},
		"a new one has less time":                         {going(0), copyOf("another", going(30)), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Syncer{Session: &session.Session{}, Options: Options{Removals: removals{forced: "forced"}}}
			s.SetIdentity(translate.Tenant{})
			if got := s.hurried(m, session.Objects{Tenant: tc.tenant, Super: tc.super}); got != tc.want {
				t.Errorf("hurried: %t, want %t", got, tc.want)
			}
		})
	}
}

// removals is a gate that stays closed, and knows of one object that was deleted by force.
type removals struct {
	forced types.UID
}

var errMissing, errUnreferred = errors.New("missing"), errors.New("not referred to")

func (removals) AllowRemoval(context.Context, *kinds.Kind, session.Objects) error { return errMissing }
func (removals) AllowRelease(context.Context) error                               { return errUnreferred }
func (r removals) WasForced(uid types.UID) bool                                   { return uid == r.forced }

func TestAllowRetract(t *testing.T) {
	for name, tc := range map[string]struct {
		pair     pair
		onDemand bool
		want     error
	}{
		"the tenant deletes its pod": {pair{tenant: session.Deleting, same: true, wanted: true, mirrored: true}, false, nil},
		"a kind is off":              {pair{tenant: session.Present, same: true}, false, nil},
		"nothing refers to it":       {pair{tenant: session.Present, same: true}, true, errUnreferred},
		"it is gone":                 {pair{}, false, errMissing},
		"it is another one":          {pair{tenant: session.Present, wanted: true}, false, errMissing},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindstest.Rich()
			k.OnDemand = tc.onDemand
			s := &Syncer{Session: &session.Session{}, Options: Options{Removals: removals{}}}
			if err := s.allowRetract(t.Context(), k.Erase(), session.Objects{}, tc.pair); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func withGrace(pod *corev1.Pod, seconds int64) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionGracePeriodSeconds = &seconds
	return pod
}
