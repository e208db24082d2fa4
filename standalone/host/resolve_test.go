package host

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// TestDomainWatch: a domain is reported once when it no longer resolves, and when
// it does again.
func TestDomainWatch(t *testing.T) {
	missing := &net.DNSError{Err: "no such host", Name: "any", IsNotFound: true}
	var lines []string
	answers := []error{nil, missing, missing, errors.New("no network"), nil, nil, missing}
	d := domainWatch{
		domain: "example.com", log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
		lookup: func(_ context.Context, host string) ([]string, error) {
			if host != "any-000000-tenant.example.com" {
				t.Errorf("%s was resolved", host)
			}
			answer := answers[0]
			answers = answers[1:]
			return nil, answer
		},
	}
	var got []bool
	for resolved := true; len(answers) > 0; {
		resolved = d.check(t.Context(), resolved)
		got = append(got, resolved)
	}
	if want := []bool{true, false, false, false, true, true, false}; !slices.Equal(got, want) || len(lines) != 3 {
		t.Errorf("got %v, want %v; logged %q", got, want, lines)
	}
}
