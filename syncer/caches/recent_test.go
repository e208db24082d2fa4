package caches

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// version returns the object default/web with a resource version.
func version(rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: rv}}
}

var webKey = client.ObjectKey{Namespace: "default", Name: "web"}

func TestRecentLatest(t *testing.T) {
	put, assume, gone := (*Recent).Put, (*Recent).Assume, (*Recent).Remove
	const none = "none"
	tests := map[string]struct {
		write   func(*Recent, string, client.Object)
		written string
		cached  string
		want    string
	}{
		"no write":               {nil, "", "5", "5"},
		"no write and no object": {nil, "", none, none},
		"the cache does not show a new object yet":         {put, "5", none, "5"},
		"the cache does not show a change yet":             {put, "5", "4", "5"},
		"the cache shows just what was written":            {put, "5", "5", "cached"},
		"the cache is ahead":                               {put, "5", "6", "6"},
		"more digits are a later version":                  {put, "9", "10", "10"},
		"fewer digits are an earlier version":              {put, "10", "9", "10"},
		"versions that cannot be compared: the cache wins": {put, "5", "opaque", "opaque"},
		"a write without a version is not waited for":      {put, "", "5", "5"},

		"an assumed write is later than its version": {assume, "5", "5", "written"},
		"the cache has got past what is assumed":     {assume, "5", "6", "6"},
		"the cache is behind what is assumed":        {assume, "5", "4", "5"},
		"an assumption that cannot be compared":      {assume, "opaque", "5", "5"},

		"a deleted object is gone":                    {gone, "5", "5", none},
		"a deleted object with an older cached state": {gone, "5", "4", none},
		"a deleted object that the cache has removed": {gone, "5", none, none},
		"a deleted object that changes once more":     {gone, "5", "7", none},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRecent()
			written := version(tt.written)
			if tt.write != nil {
				tt.write(r, "Pod", written)
			}
			var cached client.Object
			if tt.cached != none {
				cached = version(tt.cached)
			}
			got := r.Latest("Pod", webKey, cached)
			switch tt.want {
			case none:
				if got != nil {
					t.Errorf("latest is %v, want none, as a nil interface", got)
				}
			case "cached":
				if got != cached {
					t.Errorf("latest is %v, want the cache's", got)
				}
			case "written":
				if got != client.Object(written) {
					t.Errorf("latest is %v, want what was written", got)
				}
			default:
				if got == nil || got.GetResourceVersion() != tt.want {
					t.Errorf("latest is %v, want version %s", got, tt.want)
				}
			}
		})
	}
}

func TestRecentSeen(t *testing.T) {
	put, assume, gone := (*Recent).Put, (*Recent).Assume, (*Recent).Remove
	tests := map[string]struct {
		write          func(*Recent, string, client.Object)
		written, event string
		dropped, own   bool
	}{
		"an older event is not what was written":    {put, "5", "4", false, false},
		"the event of the write":                    {put, "5", "5", true, true},
		"a later event":                             {put, "5", "6", true, false},
		"an event that cannot be compared":          {put, "5", "opaque", true, false},
		"the version that an assumption began from": {assume, "5", "5", false, false},
		"the event of what was assumed":             {assume, "5", "6", true, false},
		"the last version of what is gone":          {gone, "5", "5", false, false},
		"a change of what is gone, on its way out":  {gone, "5", "6", false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRecent()
			tt.write(r, "Pod", version(tt.written))
			if own := r.Seen("Pod", version(tt.event)); own != tt.own {
				t.Errorf("the event is of the write: %t, want %t", own, tt.own)
			}
			if dropped := len(r.written) == 0; dropped != tt.dropped {
				t.Errorf("the write is deleted: %t, want %t", dropped, tt.dropped)
			}
		})
	}
}

// TestRecentGoneIsThatObject checks that another object of the name exists, and
// so does one with a finalizer.
func TestRecentGoneIsThatObject(t *testing.T) {
	for name, tt := range map[string]struct {
		version    string
		uid        types.UID
		finalizers []string
		there      bool
	}{
		"the same object":                  {"6", "a", nil, false},
		"another one of its name":          {"6", "b", nil, true},
		"a finalizer, before the deletion": {"5", "a", []string{"example.com/hold"}, false},
		"a finalizer, after it":            {"6", "a", []string{"example.com/hold"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRecent()
			gone := version("5")
			gone.UID = "a"
			r.Remove("Pod", gone)
			cached := version(tt.version)
			cached.UID, cached.Finalizers = tt.uid, tt.finalizers
			if there := r.Latest("Pod", webKey, cached) != nil; there != tt.there {
				t.Errorf("it is there: %t, want %t", there, tt.there)
			}
		})
	}
}

func TestRecentKeepsObjectsApart(t *testing.T) {
	r := NewRecent()
	r.Put("Pod", version("5"))
	other := client.ObjectKey{Namespace: "other", Name: "web"}
	if got := r.Latest("Service", webKey, nil); got != nil {
		t.Errorf("a service of that name is %v", got)
	}
	if got := r.Latest("Pod", other, nil); got != nil {
		t.Errorf("a pod of that name in another namespace is %v", got)
	}
	r.Seen("Service", version("6"))
	r.Ended("Service", version("6"))
	elsewhere := version("6")
	elsewhere.Namespace = "other"
	r.Ended("Pod", elsewhere)
	if got := r.Latest("Pod", webKey, nil); got == nil {
		t.Error("the pod was dropped because of another object")
	}
}

func TestRecentEnded(t *testing.T) {
	of := func(uid types.UID) *corev1.Pod {
		pod := version("5")
		pod.UID = uid
		return pod
	}
	r := NewRecent()
	r.Put("Pod", of("new"))
	r.Ended("Pod", of("old"))
	if got := r.Latest("Pod", webKey, nil); got == nil {
		t.Error("another object's end dropped the new one")
	}
	r.Remove("Pod", of("new"))
	r.Ended("Pod", of("new"))
	r.Ended("Pod", of("new"))
	if len(r.written) != 0 {
		t.Error("a deleted entry is still held")
	}
}

// TestRecentAnswerAfterTheEnd checks a deletion whose event arrives before the
// answer to an earlier write.
func TestRecentAnswerAfterTheEnd(t *testing.T) {
	of := func(uid types.UID, rv string) *corev1.Pod {
		pod := version(rv)
		pod.UID = uid
		return pod
	}
	for name, tt := range map[string]struct {
		write   func(*Recent, string, client.Object)
		written *corev1.Pod
		held    bool
	}{
		"a change before the end":           {(*Recent).Put, of("a", "5"), false},
		"an assumption before the end":      {(*Recent).Assume, of("a", "5"), false},
		"the end itself":                    {(*Recent).Put, of("a", "6"), false},
		"one that came back":                {(*Recent).Put, of("a", "7"), true},
		"another of its name":               {(*Recent).Put, of("b", "5"), true},
		"an object that cannot be compared": {(*Recent).Put, of("a", "opaque"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := NewRecent()
				r.Ended("Pod", of("a", "6"))
				tt.write(r, "Pod", tt.written)
				if got := r.Latest("Pod", webKey, nil); (got != nil) != tt.held {
					t.Errorf("afterwards, the object is %v", got)
				}
				time.Sleep(2 * lifetime)
				r.Sweep()
				if r.ends.Len()+len(r.written) != 0 {
					t.Errorf("%d ends and %d writes are held for ever", r.ends.Len(), len(r.written))
				}
			})
		})
	}
}

func TestRecentDropsWhatWasOvertaken(t *testing.T) {
	r := NewRecent()
	r.Put("Pod", version("5"))
	r.Latest("Pod", webKey, version("4"))
	if len(r.written) != 1 {
		t.Error("a write that the cache has not reached was dropped")
	}
	r.Latest("Pod", webKey, version("6"))
	if len(r.written) != 0 {
		t.Error("a write that the cache has got past is still held")
	}
}

func TestRecentKeepsTheLastWrite(t *testing.T) {
	r := NewRecent()
	r.Put("Pod", version("5"))
	r.Put("Pod", version("7"))
	if got := r.Latest("Pod", webKey, version("6")); got.GetResourceVersion() != "7" {
		t.Errorf("latest is version %s, want 7", got.GetResourceVersion())
	}
	r.Remove("Pod", version("7"))
	r.Put("Pod", version("9"))
	if got := r.Latest("Pod", webKey, version("7")); got == nil || got.GetResourceVersion() != "9" {
		t.Errorf("the recreated object is %v, want version 9", got)
	}
}

// TestRecentOutlivesNoCutOff checks a write whose event came before its answer,
// and never comes again.
func TestRecentOutlivesNoCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecent()
		r.Put("Pod", version("5"))
		time.Sleep(lifetime)
		if got := r.Latest("Pod", webKey, nil); got == nil {
			t.Error("a write is dropped before its time")
		}
		time.Sleep(time.Nanosecond)
		if got := r.Latest("Pod", webKey, nil); got != nil {
			t.Errorf("after its time the object is still %v", got)
		}
		r.Put("Pod", version("6"))
		time.Sleep(lifetime + time.Nanosecond)
		r.Put("Service", version("1"))
		if len(r.written) != 1 {
			t.Errorf("%d writes are held, want the last alone", len(r.written))
		}
		time.Sleep(lifetime + time.Nanosecond)
		if r.Sweep(); len(r.written) != 0 {
			t.Errorf("%d writes are held after their time, want none", len(r.written))
		}
	})
}

// TestRecentConcurrently checks that a writer reads its own writes that have no
// event yet, whatever other goroutines do.
func TestRecentConcurrently(t *testing.T) {
	r := NewRecent()
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			kind := fmt.Sprint("Kind", w)
			for i := 1; i < 500; i++ {
				r.Put(kind, version(fmt.Sprint(2*i)))
				if got := r.Latest(kind, webKey, version(fmt.Sprint(2*i-1))); got.GetResourceVersion() != fmt.Sprint(2*i) {
					t.Errorf("latest is version %s, want %d", got.GetResourceVersion(), 2*i)
				}
				// All goroutines also write one shared object.
				switch rv := fmt.Sprint(1 + random.IntN(100)); random.IntN(5) {
				case 0:
					r.Put("Pod", version(rv))
				case 1:
					r.Assume("Pod", version(rv))
				case 2:
					r.Remove("Pod", version(rv))
				case 3:
					r.Seen("Pod", version(rv))
				default:
					r.Latest("Pod", webKey, version(rv))
				}
				r.Seen(kind, version(fmt.Sprint(2*i)))
			}
		})
	}
	workers.Wait()
	r.Ended("Pod", version("101"))
	if len(r.written) != 0 {
		t.Errorf("%d writes are held after all were seen", len(r.written))
	}
}
