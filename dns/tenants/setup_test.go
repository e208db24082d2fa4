package tenants

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// eventually waits until a condition is met.
func eventually(t *testing.T, met func() bool) {
	t.Helper()
	for began := time.Now(); !met(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the condition is not met")
		}
	}
}

func TestParse(t *testing.T) {
	config, err := parse(caddy.NewTestController("dns", "tenants {\n kubeconfig /file\n listen 127.0.0.1\n ttl 5\n rate 7\n concurrent 8\n}"))
	want := Config{Kubeconfig: "/file", Host: "127.0.0.1", TTL: 5, Limits: DefaultLimits()}
	want.Limits.Rate, want.Limits.Concurrent = 7, 8
	if err != nil || config != want {
		t.Errorf("got %+v (%v), want %+v", config, err, want)
	}
	for _, wrong := range []string{"rate", "rate 0", "rate -1", "rate many", "rate 1 2", "other 1", "kubeconfig"} {
		if _, err := parse(caddy.NewTestController("dns", "tenants {\n "+wrong+"\n}")); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
