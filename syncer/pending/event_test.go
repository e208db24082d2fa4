package pending

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// reasonRejected is the reason of the event on a rejected object.
const reasonRejected = "SyncRejected"

func TestEvent(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	about := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web", UID: "web-uid", ResourceVersion: "7",
	}
	got := newEvent(about, reasonRejected, "no", now)
	want := &corev1.Event{
		// echo -n web-uidno | sha256sum
		ObjectMeta:          metav1.ObjectMeta{Namespace: "default", Name: "web.c2c9891e4bc3fe36"},
		InvolvedObject:      *about,
		Type:                "Warning",
		Reason:              reasonRejected,
		Message:             "no",
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Count:               1,
		Source:              corev1.EventSource{Component: "vc-syncer"},
		ReportingController: "vc-syncer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// TestEventName: the same reason of the same object finds its event again;
// another does not.
func TestEventName(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	about := corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web", UID: "web-uid", ResourceVersion: "7"}
	name := newEvent(&about, reasonRejected, "no", now).Name

	changed := about
	changed.ResourceVersion = "8"
	if got := newEvent(&changed, reasonRejected, "no", now.Add(time.Hour)).Name; got != name {
		t.Errorf("the same reason, later, is event %s, want %s", got, name)
	}
	if got := newEvent(&about, reasonRejected, "never", now).Name; got == name {
		t.Errorf("another reason is the same event %s", got)
	}
	anew := about
	anew.UID = "another-uid"
	if got := newEvent(&anew, reasonRejected, "no", now).Name; got == name {
		t.Errorf("another object of that name has the same event %s", got)
	}
	end := strings.Repeat("x", maxMessage)
	if a, b := newEvent(&about, reasonRejected, end+"a", now), newEvent(&about, reasonRejected, end+"b", now); a.Name != b.Name {
		t.Errorf("reasons that read the same have the events %s and %s", a.Name, b.Name)
	}
}

func TestEventNamespace(t *testing.T) {
	about := &corev1.ObjectReference{Kind: "Namespace", Name: "prod", UID: "ns-uid"}
	got := newEvent(about, reasonRejected, "no", time.Time{})
	if got.Namespace != "default" || got.InvolvedObject.Namespace != "" {
		t.Errorf("the event of a cluster-scoped object is in %q, about one in %q; want it in default, about one in none",
			got.Namespace, got.InvolvedObject.Namespace)
	}
}

func TestEventOfALongName(t *testing.T) {
	for name, object := range map[string]string{
		"as long as may be": strings.Repeat("n", 253),
		"cut behind a dot":  strings.Repeat("n", 235) + "." + strings.Repeat("n", 17),
		"cut behind a dash": strings.Repeat("n", 234) + "-.n" + strings.Repeat("n", 16),
		"just short enough": strings.Repeat("n", 236),
		"just not":          strings.Repeat("n", 237),
		"of one letter":     "n",
	} {
		t.Run(name, func(t *testing.T) {
			got := newEvent(&corev1.ObjectReference{Name: object, UID: "uid"}, reasonRejected, "no", time.Time{})
			if wrong := validation.IsDNS1123Subdomain(got.Name); len(wrong) > 0 {
				t.Errorf("%q, of %d characters, is no name of an event: %q", got.Name, len(got.Name), wrong)
			}
			if head := object[:min(len(object), 200)]; !strings.HasPrefix(got.Name, head) {
				t.Errorf("%q does not begin with the object's name", got.Name)
			}
			if got.InvolvedObject.Name != object {
				t.Errorf("the event is about %q, want %q", got.InvolvedObject.Name, object)
			}
		})
	}
}

func TestEventMessage(t *testing.T) {
	fill := func(n int) string { return strings.Repeat("x", n) }
	tests := map[string]struct{ message, want string }{
		"empty":                                {"", ""},
		"of just the length that may be":       {fill(1024), fill(1024)},
		"longer":                               {fill(1025), fill(1024)},
		"a character of two bytes on the edge": {fill(1023) + "é" + fill(9), fill(1023)},
		"a character of two bytes before it":   {fill(1022) + "é" + fill(9), fill(1022) + "é"},
		"a character of four bytes on it":      {fill(1021) + "🙂" + fill(9), fill(1021)},
		"a character of four bytes before it":  {fill(1020) + "🙂" + fill(9), fill(1020) + "🙂"},
		"characters of three bytes":            {strings.Repeat("語", 400), strings.Repeat("語", 341)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := newEvent(&corev1.ObjectReference{Name: "web"}, reasonRejected, tt.message, time.Time{}).Message
			if got != tt.want {
				t.Errorf("the message has %d bytes and ends in %q, want %d", len(got), got[max(0, len(got)-8):], len(tt.want))
			}
			if !utf8.ValidString(got) {
				t.Errorf("the message ends in half a character: %q", got[len(got)-4:])
			}
		})
	}
}

// FuzzCut: what is cut is the beginning of what was given, as much of it as
// there is room for, and whole characters.
func FuzzCut(f *testing.F) {
	f.Add("", 0)
	f.Add("語語", 4)
	f.Add("\xff\xff\xff", 2)
	f.Add("\x80\x80\x80\x80\x80", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 0 {
			t.Skip("not a length")
		}
		got := cut(text, most)
		switch {
		case len(got) > most:
			t.Errorf("cut(%q, %d) = %q, which is too long", text, most, got)
		case !strings.HasPrefix(text, got):
			t.Errorf("cut(%q, %d) = %q, which is something else", text, most, got)
		case utf8.ValidString(text) && !utf8.ValidString(got):
			t.Errorf("cut(%q, %d) = %q, which ends in half a character", text, most, got)
		case utf8.ValidString(text) && len(got) < min(len(text), most-utf8.UTFMax+1):
			t.Errorf("cut(%q, %d) = %q, which is too short", text, most, got)
		}
	})
}
