package quota

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

const (
	root = "/controlplanes/"
	kibi = 1024
)

// ledgerWith returns a ledger in which control plane a stores some records of a
// kibibyte, keys included.
func ledgerWith(limits Limits, records ...string) *Ledger {
	ledger := NewLedger(root, 0)
	ledger.SetLimits("a", limits)
	for _, record := range records {
		ledger.put([]byte(root+"a/"+record), kibi)
	}
	return ledger
}

func TestLimits(t *testing.T) {
	full := Limits{Bytes: 8 * kibi, Objects: 8}
	eight := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
	for name, test := range map[string]struct {
		limits  Limits
		key     string
		size    int
		purpose Purpose
		want    string
	}{
		"no limits":                     {Limits{}, "a/new", kibi, Ordinary, ""},
		"another object":                {Limits{Objects: 8}, "a/new", 1, Ordinary, "limited to 8 objects of all kinds, and has 8"},
		"more bytes":                    {Limits{Bytes: 8 * kibi}, "a/new", 1, Ordinary, "limited to 8Ki, of which 8Ki are used"},
		"an object that grows":          {full, "a/1", kibi + 1, Ordinary, "limited to 8Ki"},
		"an object of the same size":    {full, "a/1", kibi, Ordinary, ""},
		"an object that shrinks":        {full, "a/1", 1, Ordinary, ""},
		"growth in the reserve":         {full, "a/1", 2 * kibi, Upkeep, ""},
		"growth beyond the reserve":     {full, "a/1", 2*kibi + 1, Upkeep, "limited to 8Ki"},
		"an object in the reserve":      {full, "a/new", kibi, Upkeep, ""},
		"a deletion that leaves a mark": {full, "a/1", 9 * kibi, Vital, ""},
		"allocations":                   {full, "a/ranges/servicenodeports", 9 * kibi, Ordinary, ""},
		"what only looks like these":    {full, "a/rangers/1", kibi, Ordinary, "limited to 8Ki"},
		"another control plane":         {full, "ab/new", kibi, Ordinary, ""},
		"keys of no control plane":      {full, "new", kibi, Ordinary, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := ledgerWith(test.limits, eight...)
			_, reason, err := ledger.reserve([]write{{key: []byte(root + test.key), size: test.size}}, test.purpose, time.Now())
			switch {
			case test.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || reason != ReasonStorage):
				t.Errorf("got %v because of %q, want %q", err, reason, test.want)
			}
		})
	}
}

func TestWritesUnderWayCount(t *testing.T) {
	ledger := ledgerWith(Limits{Bytes: 2 * kibi})
	reserve := func(name string) func(int64) {
		settle, _, err := ledger.reserve([]write{{key: []byte(root + "a/" + name), size: kibi}}, Ordinary, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return settle
	}
	rejected := func() bool {
		_, _, err := ledger.reserve([]write{{key: []byte(root + "a/third"), size: kibi}}, Ordinary, time.Now())
		return err != nil
	}
	first, second := reserve("1"), reserve("2")
	if !rejected() {
		t.Error("two writes under way leave no room for a third")
	}
	first(7) // and the ledger has not seen revision 7
	if !rejected() {
		t.Error("a write counts until the ledger has seen it")
	}
	ledger.apply([]mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: []byte(root + "a/1"), Value: make([]byte, kibi), ModRevision: 7}}})
	if !rejected() {
		t.Error("a write counts after the ledger has seen it")
	}
	second(0)
	ledger.apply([]mvccpb.Event{{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte(root + "a/1"), ModRevision: 8}}})
	if rejected() {
		t.Error("a failed write and a deletion make room")
	}
	if got := ledger.Usage("a"); got != (Usage{}) {
		t.Errorf("%+v is stored, want nothing", got)
	}
}

func TestPace(t *testing.T) {
	ledger := ledgerWith(Limits{WriteBytesPerSecond: kibi}, "1")
	now := time.Now()
	write := []write{{key: []byte(root + "a/1"), size: kibi}}
	for range WriteBurst {
		if _, _, err := ledger.reserve(write, Ordinary, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, reason, err := ledger.reserve(write, Ordinary, now); err == nil || reason != ReasonPace {
		t.Errorf("got %v because of %q, want a rejection because of the pace", err, reason)
	}
	if _, _, err := ledger.reserve(write, Upkeep, now); err != nil {
		t.Errorf("the control plane's own write is rejected: %v", err)
	}
	if _, _, err := ledger.reserve(write, Ordinary, now.Add(time.Second)); err != nil {
		t.Errorf("rejected a second later: %v", err)
	}
}

// TestPaceOfWrites: small writes are limited by their number.
func TestPaceOfWrites(t *testing.T) {
	ledger := ledgerWith(Limits{WritesPerSecond: 2, WriteBytesPerSecond: mebi}, "1")
	now := time.Now()
	reserve := func(purpose Purpose, at time.Time) error {
		_, reason, err := ledger.reserve([]write{{key: []byte(root + "a/1"), size: 1}}, purpose, at)
		if err != nil && reason != ReasonPace {
			t.Errorf("rejected because of %q", reason)
		}
		return err
	}
	for range 2 * WriteBurst {
		if err := reserve(Ordinary, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := reserve(Ordinary, now); err == nil || !strings.Contains(err.Error(), "more than 2 times a second") {
		t.Errorf("got %v", err)
	}
	if reserve(Upkeep, now) != nil || reserve(Vital, now) != nil {
		t.Error("the control plane's own writes are rejected")
	}
	if err := reserve(Ordinary, now.Add(time.Second)); err != nil {
		t.Errorf("rejected a second later: %v", err)
	}
	_, _, rejected := ledger.Status("a")
	if rejected[ReasonPace] != 1 {
		t.Errorf("%d writes were rejected, want 1", rejected[ReasonPace])
	}
}

// TestStatus: a copy of what is known of a control plane.
func TestStatus(t *testing.T) {
	ledger := ledgerWith(Limits{Objects: 2}, "1", "2")
	ledger.put([]byte(root+"a/1"), 3*kibi)
	ledger.put([]byte(root+"a/1"), 1)
	limits, used, rejected := ledger.Status("a")
	if limits != (Limits{Objects: 2}) || used != (Usage{Bytes: kibi + 1, Objects: 2}) || len(rejected) != 0 {
		t.Errorf("got %+v, %+v, %v", limits, used, rejected)
	}
	rejected[ReasonPace] = 1
	if _, _, again := ledger.Status("a"); len(again) != 0 {
		t.Error("the caller changes the ledger")
	}
	if largest := ledger.Largest("a"); largest != 3*kibi {
		t.Errorf("the largest record had %d bytes, want %d", largest, 3*kibi)
	}
	if limits, used, _ := ledger.Status("b"); limits != (Limits{}) || used != (Usage{}) || ledger.Largest("b") != 0 {
		t.Error("a control plane without an account has something")
	}
}

// TestHugeLimits: a limit near the largest number is none in effect, and
// overflows nowhere.
func TestHugeLimits(t *testing.T) {
	const huge = math.MaxInt64
	ledger := ledgerWith(Limits{Bytes: huge, Objects: huge, WriteBytesPerSecond: huge}, "1")
	for _, purpose := range []Purpose{Ordinary, Upkeep, Vital} {
		for range 3 {
			write := []write{{key: []byte(root + "a/2"), size: 1 << 40}}
			if _, reason, err := ledger.reserve(write, purpose, time.Now()); err != nil {
				t.Errorf("a write for the purpose %q is rejected because of %q: %v", purpose, reason, err)
			}
		}
	}
}

// TestLimitsCanChange: a control plane that is run again has the limits of its
// new spec, for what it stores already too.
func TestLimitsCanChange(t *testing.T) {
	ledger := ledgerWith(Limits{Objects: 1}, "1", "2")
	reserve := func(key string) error {
		_, _, err := ledger.reserve([]write{{key: []byte(root + "a/" + key), size: kibi}}, Ordinary, time.Now())
		return err
	}
	if reserve("1") != nil || reserve("3") == nil {
		t.Error("a control plane beyond its limit may update what it has, and create nothing")
	}
	ledger.SetLimits("a", Limits{Objects: 3})
	if err := reserve("3"); err != nil {
		t.Errorf("rejected after the limit was raised: %v", err)
	}
	ledger.Forget("a")
	if err := reserve("4"); err != nil {
		t.Errorf("a control plane without an account is limited: %v", err)
	}
}

// TestForgottenAccount: writes that are under way when a control plane is
// deleted do not count for the next one of its name.
func TestForgottenAccount(t *testing.T) {
	ledger := ledgerWith(Limits{Objects: 1})
	write := []write{{key: []byte(root + "a/1"), size: kibi}}
	settle, _, err := ledger.reserve(write, Ordinary, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ledger.Forget("a")
	ledger.Forget("a")
	ledger.Forget("never-there")
	ledger.SetLimits("a", Limits{Objects: 1})
	settle(5)
	ledger.reached(5)
	if _, _, err := ledger.reserve(write, Ordinary, time.Now()); err != nil {
		t.Errorf("the new control plane has no room: %v", err)
	}
	ledger.remove([]byte(root + "gone/1"))
	ledger.remove([]byte("/elsewhere"))
	if got := ledger.Usage("gone"); got != (Usage{}) {
		t.Errorf("a control plane that stores nothing has %+v", got)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0", 1: "1", 1023: "1023", kibi: "1Ki", kibi + 1: "1025", 10*kibi + 5: "10Ki",
		mebi: "1Mi", 3*mebi + kibi: "3073Ki", 10*mebi + kibi + 1: "10Mi", 64 * mebi: "64Mi", 8 << 30: "8Gi",
	} {
		if got := size(bytes); got != want {
			t.Errorf("%d bytes are %q, want %q", bytes, got, want)
		}
	}
}

func TestCapacityOfAll(t *testing.T) {
	ledger := NewLedger(root, 2*kibi)
	ledger.put([]byte(root+"a/1"), kibi)
	ledger.put([]byte(root+"b/1"), kibi)
	_, reason, err := ledger.reserve([]write{{key: []byte(root + "b/2"), size: 1}}, Ordinary, time.Now())
	if err == nil || reason != ReasonStore {
		t.Errorf("got %v because of %q, want a rejection because of the store", err, reason)
	}
	ledger.Forget("a")
	if _, _, err := ledger.reserve([]write{{key: []byte(root + "b/2"), size: 1}}, Ordinary, time.Now()); err != nil {
		t.Errorf("rejected after a control plane is gone: %v", err)
	}
}

func TestSuperseded(t *testing.T) {
	ledger := ledgerWith(Limits{}, "1", "1", "2")
	ledger.remove([]byte(root + "a/2"))
	ledger.remove([]byte(root + "a/2"))
	if got, _ := ledger.Superseded(); got != 2*kibi {
		t.Errorf("%d bytes are superseded, want %d", got, 2*kibi)
	}
}
