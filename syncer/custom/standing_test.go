package custom

import (
	"context"
	"errors"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// standingWidgets returns the resources of a super cluster of which widgets
// stand, and the kinds that do.
func standingWidgets(super *side, w *watches) (*Resources, *[]*kinds.Kind) {
	var stand []*kinds.Kind
	return NewResources(super, w, Options{
		Build: build, Interval: time.Nanosecond, Timeout: time.Second,
		Standing: []kinds.StandingResource{{Definition: "widgets.example.com", Direction: tenancyv1alpha1.SyncDown}},
		Stands:   func(k *kinds.Kind) { stand = append(stand, k) },
		Lacks:    func(context.Context, string) bool { return super.lacks },
	}), &stand
}

// TestStand: a standing resource is watched once, as soon as that is possible,
// and in another version when that is no longer served.
func TestStand(t *testing.T) {
	super, w := &side{}, &watches{}
	c, stand := standingWidgets(super, w)
	pass := func(step string, want int) {
		t.Helper()
		known, err := c.Stand(t.Context())
		if err != nil || len(known) != want {
			t.Errorf("%s: %d new ones, error %v, want %d", step, len(known), err, want)
		}
	}
	pass("without a definition", 0)
	super.definition, super.lacks = widgets(), true
	establish(super.definition)
	super.allow([]string{"list", "watch"})
	pass("while it is known not to exist", 0)
	super.definition, super.lacks = widgets(), false
	super.allow(nil)
	pass("before it is served", 0)
	establish(super.definition)
	pass("without rights", 0)
	super.allow([]string{"list"})
	pass("without the right to watch", 0)
	super.allow([]string{"list", "watch"})
	w.err = errors.New("no such kind")
	if _, err := c.Stand(t.Context()); !errors.Is(err, w.err) || len(*stand) > 0 {
		t.Errorf("%d stand although they cannot be watched: %v", len(*stand), err)
	}
	w.err = nil
	pass("at last", 1)
	pass("again", 0)
	if len(*stand) != 1 {
		t.Errorf("%v stand", *stand)
	}

	for _, k := range *stand {
		if k.Source != kinds.Standing || k.GVK.Version != "v1" {
			t.Errorf("%s is watched in the cache %d", k.GVK, k.Source)
		}
	}

	super.definition.Spec.Versions[0].Served = false
	pass("in another version", 1)
	if len(*stand) != 2 || (*stand)[1].GVK.Version != "v1beta1" || w.opened != w.closed+1 {
		t.Errorf("%d stand, %d watches were opened, %d closed", len(*stand), w.opened, w.closed)
	}
	super.definition = nil
	pass("without its definition", 0)
	if w.opened != w.closed+1 {
		t.Error("the watch ends with the definition, which may come back")
	}
}

func TestReadVersion(t *testing.T) {
	for want, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"v1":      func(*apiextensionsv1.CustomResourceDefinition) {},
		"v1beta1": func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false },
		"": func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Served, d.Spec.Versions[1].Served = false, false
		},
	} {
		if got := readVersion(widgets(change)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
