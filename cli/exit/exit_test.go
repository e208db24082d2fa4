package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOf(t *testing.T) {
	vcs := schema.GroupResource{Group: "tenancy.x-k8s.io", Resource: "virtualclusters"}
	cases := map[string]struct {
		err  error
		want int
	}{
		"None":         {nil, Done},
		"Other":        {errors.New("it broke"), Failed},
		"Usage":        {Usagef("no name"), Usage},
		"NotFound":     {fmt.Errorf("get: %w", apierrors.NewNotFound(vcs, "red")), NotFound},
		"Forbidden":    {apierrors.NewForbidden(vcs, "red", errors.New("no")), Denied},
		"Unauthorized": {apierrors.NewUnauthorized("no"), Denied},
		"Deadline":     {fmt.Errorf("wait: %w", context.DeadlineExceeded), TimedOut},
		"Coded":        {fmt.Errorf("connect: %w", &Error{Code: Unreachable, Err: errors.New("refused")}), Unreachable},
		"WithKeepsIt":  {With(apierrors.NewNotFound(vcs, "red"), "List them"), NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "red", errors.New("no"))
	for want, err := range map[string]error{
		"":             errors.New("it broke"),
		"List them: x": fmt.Errorf("get: %w", With(errors.New("it broke"), "List them: %s", "x")),
		"Check your permissions: kubectl auth can-i --list": With(forbidden, ""),
		"Read the help: kubectl vc --help":                  Usagef("no name"),
	} {
		if got := Next(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestEveryCodeHasAMeaning: codes are numbered without gaps, so that none is
// without a line in the reference.
func TestEveryCodeHasAMeaning(t *testing.T) {
	for i, m := range Meanings() {
		if m.Code != i || m.Meaning == "" {
			t.Errorf("line %d is about code %d: %q", i, m.Code, m.Meaning)
		}
	}
	if len(Meanings()) != Unhealthy+1 {
		t.Errorf("%d meanings", len(Meanings()))
	}
}
