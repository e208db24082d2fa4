package network

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// nothing provides networks that are names.
type nothing struct{}

func (nothing) Ensure(context.Context, Network) (State, error) { return State{Ready: true}, nil }
func (nothing) Delete(context.Context, Network) (bool, error)  { return true, nil }
func (nothing) PreparePod(context.Context, Pod) (Attachment, error) {
	return Attachment{Ready: true}, nil
}
func (nothing) ReleasePod(context.Context, Pod) (bool, error) { return true, nil }

// of returns a registration of a type.
func of(kind string, create func(Environment) (Provider, error)) Registration {
	return Registration{Type: kind, New: create}
}

func creates(Environment) (Provider, error) { return nothing{}, nil }

func TestMake(t *testing.T) {
	for name, tc := range map[string]struct {
		registrations []Registration
		offered       []string
		err           string
	}{
		"none":          {nil, nil, ""},
		"two":           {[]Registration{of("vpc", creates), of("mizar", creates)}, []string{"mizar", "vpc"}, ""},
		"twice":         {[]Registration{of("vpc", creates), of("vpc", creates)}, nil, "two providers offer networks of type vpc"},
		"no type":       {[]Registration{of("", creates)}, nil, `type ""`},
		"a bad type":    {[]Registration{of("VPC", creates)}, nil, `type "VPC"`},
		"without New":   {[]Registration{of("vpc", nil)}, nil, "it has no function New"},
		"nothing":       {[]Registration{of("vpc", func(Environment) (Provider, error) { return nil, nil })}, nil, "its New returns none"},
		"an error":      {[]Registration{of("vpc", func(Environment) (Provider, error) { return nil, errors.New("no cloud") })}, nil, "type vpc: no cloud"},
		"one that dies": {[]Registration{of("vpc", func(Environment) (Provider, error) { panic("no cloud") })}, nil, "it panicked: no cloud"},
	} {
		t.Run(name, func(t *testing.T) {
			offers, err := Make(Environment{}, tc.registrations...)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got %v, want %q", err, tc.err)
			}
			if got := slices.Sorted(maps.Keys(offers)); !slices.Equal(got, tc.offered) {
				t.Errorf("it offers %v, want %v", got, tc.offered)
			}
		})
	}
}
