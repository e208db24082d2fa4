package plugins

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func named(id string) Registration {
	return Registration{ID: id, InitFn: func(Environment) (Validator, error) { return nil, nil }}
}

func TestRegister(t *testing.T) {
	disabled := named("off")
	disabled.Disable = true
	for name, tc := range map[string]struct {
		registration Registration
		want         string
	}{
		"another":         {named("mine"), ""},
		"a disabled one":  {disabled, ""},
		"one of that ID":  {named("quota"), "two plugins have the ID quota"},
		"one without ID":  {named(""), `plugin ID ""`},
		"one of a bad ID": {named("My Plugin"), `plugin ID "My Plugin"`},
		"without InitFn":  {Registration{ID: "empty"}, "plugin empty has no InitFn"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Registry{}
			if err := r.Register(named("quota")); err != nil {
				t.Fatal(err)
			}
			err := r.Register(tc.registration)
			if tc.want == "" {
				if err != nil || len(r.List()) != 2 {
					t.Errorf("got %v and %d plugins", err, len(r.List()))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestChosen checks that plugins are selected by ID, and that a disabled one is
// not (QV-7).
func TestChosen(t *testing.T) {
	r := &Registry{}
	off := named("off")
	off.Disable = true
	for _, registration := range []Registration{named("quota"), off, named("mine")} {
		if err := r.Register(registration); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		ids, want []string
		err       string
	}{
		"all":            {nil, []string{"mine", "quota"}, ""},
		"some":           {[]string{"quota"}, []string{"quota"}, ""},
		"in any order":   {[]string{"quota", "mine"}, []string{"mine", "quota"}, ""},
		"a disabled one": {[]string{"off"}, nil, "off is disabled"},
		"an unknown ID":  {[]string{"quota", "other"}, nil, `"other" is not in this program, which has mine, off, quota`},
		"an empty ID":    {[]string{""}, nil, `"" is not in this program`},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := r.Chosen(tc.ids...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			var got []string
			for _, registration := range chosen {
				got = append(got, registration.ID)
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}
