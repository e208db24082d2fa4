package provisioner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// nothing provisions nothing.
type nothing struct{}

func (nothing) Ensure(context.Context, *tenancyv1alpha1.VirtualCluster) (ControlPlane, error) {
	return ControlPlane{}, nil
}
func (nothing) Delete(context.Context, *tenancyv1alpha1.VirtualCluster) (bool, error) {
	return true, nil
}
func (nothing) Capabilities() Capabilities { return Capabilities{} }

// named returns a registration whose New returns err, or a provisioner.
func named(name string, err error) Registration {
	return Registration{Name: tenancyv1alpha1.ProvisionerType(name), New: func(manager.Manager) (Provisioner, error) {
		if err != nil {
			return nil, err
		}
		return nothing{}, nil
	}}
}

func TestMake(t *testing.T) {
	type registrations []Registration
	disabled := fmt.Errorf("%w: --magic-wand is not set", ErrDisabled)
	for name, c := range map[string]struct {
		registrations registrations
		offered       string
		disabled, err string
	}{
		"none":          {nil, "none", "", ""},
		"two":           {registrations{named("Magic", nil), named("K3s", nil)}, "K3s, Magic", "", ""},
		"disabled":      {registrations{named("Magic", disabled), named("K3s", nil)}, "K3s", "provisioner Magic: disabled: --magic-wand is not set", ""},
		"failed":        {registrations{named("Magic", errors.New("no wand"))}, "", "", "create provisioner Magic: no wand"},
		"twice":         {registrations{named("Magic", nil), named("Magic", nil)}, "", "", "two provisioners have the name Magic"},
		"disabled too":  {registrations{named("Magic", disabled), named("Magic", nil)}, "", "", "two provisioners have the name Magic"},
		"without name":  {registrations{named("", nil)}, "", "", `provisioner ""`},
		"lower case":    {registrations{named("magic", nil)}, "", "", "camel case"},
		"punctuation":   {registrations{named("Magic/Wand", nil)}, "", "", "camel case"},
		"longest":       {registrations{named("M"+strings.Repeat("a", 62), nil)}, "M" + strings.Repeat("a", 62), "", ""},
		"too long":      {registrations{named("M"+strings.Repeat("a", 63), nil)}, "", "", "at most 63"},
		"without New":   {registrations{{Name: "Magic"}}, "", "", "has no function New"},
		"nothing given": {registrations{{Name: "Magic", New: func(manager.Manager) (Provisioner, error) { return nil, nil }}}, "", "", "its New returns none"},
	} {
		t.Run(name, func(t *testing.T) {
			offered, off, err := Make(nil, c.registrations...)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err == nil && offered.String() != c.offered {
				t.Errorf("offered are %s, want %s", offered, c.offered)
			}
			if got := errors.Join(off...); (got == nil) != (c.disabled == "") || got != nil && got.Error() != c.disabled {
				t.Errorf("disabled are %v, want %q", got, c.disabled)
			}
		})
	}
}
