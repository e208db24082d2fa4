package front

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

func TestTake(t *testing.T) {
	limits := Limits{Requests: 2, Streams: 1}
	f := &inFlight{}
	first, err := f.take("jane", readClass, limits)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := f.take("jane", writeClass, limits)
	if _, err := f.take("jane", readClass, limits); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the third request: %v", err)
	}
	if _, err := f.take("joe", readClass, limits); err != nil {
		t.Errorf("of another caller: %v", err)
	}
	stream, err := f.take("jane", watchClass, limits)
	if err != nil {
		t.Errorf("a stream: %v", err)
	}
	if _, err := f.take("jane", upgradeClass, limits); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second stream: %v", err)
	}
	for _, done := range []func(){first, second, stream} {
		done()
	}
	if len(f.callers) != 1 {
		t.Errorf("%d callers are remembered, want the one in flight", len(f.callers))
	}
}

func TestPassed(t *testing.T) {
	limits := Limits{Passed: 3, PassedPerTenant: 2}
	p := &passed{}
	take := func(tenant string, want bool) func() {
		t.Helper()
		done, ok := p.take(tenant, limits)
		if ok != want {
			t.Errorf("a connection of %s: got %t, want %t", tenant, ok, want)
		}
		return done
	}
	first, second := take("red", true), take("red", true)
	take("red", false)
	blue := take("blue", true)
	take("green", false)
	first()
	take("green", true)()
	second()
	blue()
	if p.total != 0 || len(p.of) != 0 {
		t.Errorf("%d connections are counted, of %v", p.total, p.of)
	}
}

func TestClassOf(t *testing.T) {
	for target, want := range map[string]class{
		"GET /api/v1/pods":                                      readClass,
		"GET /api/v1/pods?watch=true":                           watchClass,
		"GET /api/v1/namespaces/a/pods/b/log?follow=true":       watchClass,
		"GET /api/v1/pods?watch":                                watchClass,
		"GET /api/v1/watch/pods":                                watchClass,
		"GET /apis/apps/v1/watch/namespaces/a/deployments":      watchClass,
		"GET /apis/example.com/v1/namespaces/watch/things/a":    readClass,
		"POST /api/v1/namespaces/a/pods":                        writeClass,
		"POST /api/v1/namespaces/a/services/b/proxy/upload":     proxyClass,
		"GET /api/v1/nodes/a/proxy/":                            proxyClass,
		"DELETE /apis/apps/v1/namespaces/a/deployments?watch=1": writeClass,
	} {
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if got := classOf(r, resolve.Asked{Path: r.URL.Path}); got != want {
			t.Errorf("%s is %s, want %s", target, got, want)
		}
	}
	upgrade := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/namespaces/a/pods/b/exec", nil)
	upgrade.Header.Set("Connection", "Upgrade")
	upgrade.Header.Set("Upgrade", "SPDY/3.1")
	if got := classOf(upgrade, resolve.Asked{Path: upgrade.URL.Path}); got != upgradeClass {
		t.Errorf("exec is %s", got)
	}
}

// TestCallerOf: callers are kept apart, and a token is not remembered.
func TestCallerOf(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	anonymous := callerOf(r, "red", identity.Caller{})
	r.Header.Set("Authorization", "Bearer secret")
	byToken := callerOf(r, "red", identity.Caller{Token: "secret"})
	jane := callerOf(r, "red", identity.Caller{User: &user.DefaultInfo{Name: "jane"}})
	others := callerOf(r, "blue", identity.Caller{User: &user.DefaultInfo{Name: "jane"}})
	if anonymous == byToken || byToken == jane || jane == others {
		t.Errorf("%q, %q, %q and %q", anonymous, byToken, jane, others)
	}
	r.Header.Set("Authorization", "bearer  secret")
	if again := callerOf(r, "red", identity.Caller{Token: "secret"}); again != byToken {
		t.Errorf("the same token is %q and %q", again, byToken)
	}
	if strings.Contains(byToken, "secret") {
		t.Error("it has the token")
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultLimits().Validate(); err != nil {
		t.Error(err)
	}
	if (Limits{Requests: 1, Streams: 1}).Validate() == nil {
		t.Error("limits without bodies are accepted")
	}
}
