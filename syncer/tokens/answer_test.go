package tokens

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

func TestLifeOf(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		token string
		life  time.Duration
		want  time.Duration // none if it is rejected
	}{
		"an hour":                 {"t", time.Hour, time.Hour},
		"a minute":                {"t", time.Minute, time.Minute},
		"less":                    {"t", time.Minute - time.Second, 0},
		"none":                    {"t", -time.Hour, 0},
		"a year":                  {"t", 365 * 24 * time.Hour, 24 * time.Hour},
		"of the longest token":    {strings.Repeat("t", 64<<10), time.Hour, time.Hour},
		"of a token that is more": {strings.Repeat("t", 64<<10+1), time.Hour, 0},
		"of no token":             {"", time.Hour, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := lifeOf(authenticationv1.TokenRequestStatus{Token: tt.token, ExpirationTimestamp: metav1.NewTime(now.Add(tt.life))}, now)
			if got != tt.want || pending.IsRejection(err) != (tt.want == 0) {
				t.Errorf("life %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// TestRenewAfter: tokens that were issued together are renewed apart, and long
// before they expire.
func TestRenewAfter(t *testing.T) {
	const life = 1000 * time.Second
	times := map[time.Duration]bool{}
	for range 100 {
		at := renewAfter(life)
		times[at] = true
		if at < 700*time.Second || at > 800*time.Second {
			t.Errorf("a token of %s is renewed after %s", life, at)
		}
	}
	if len(times) < 50 {
		t.Errorf("100 tokens are renewed at %d times", len(times))
	}
}

func TestIsPast(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]bool{
		"2026-01-02T03:04:04Z": true, "2026-01-02T03:04:05Z": false, "2026-01-02T03:04:06Z": false, "": true, "tomorrow": true,
	} {
		if got := isPast(text, now); got != want {
			t.Errorf("%q is past: %t, want %t", text, got, want)
		}
	}
}
