package syncdown

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/patch"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// of is a viewer that shows only the tenant.
type of struct{ *session.Tenant }

func (v of) In(_ context.Context, namespace string) kinds.View {
	return kinds.View{Tenant: v.Identity(), Namespace: namespace}
}

func blueTranslator() *translator {
	blue := session.NewTenant(kindstest.Blue())
	return &translator{blue, of{blue}, patch.Compile(nil), nil}
}

// web returns the objects of a pod without a copy.
func web(name string) session.Objects {
	key := client.ObjectKey{Namespace: "default", Name: name}
	tenant := kindstest.PodIn(key.Namespace, key.Name)
	tenant.UID = "uid"
	return session.Objects{Key: key, SuperKey: kindstest.Blue().SuperKey(key), Tenant: tenant}
}

func TestAdmit(t *testing.T) {
	k := kindstest.Rich()
	k.Reserved = func(name string) bool { return name == "kept" }
	for name, rejected := range map[string]bool{"web": false, "unwanted": true, "kept": true} {
		if err := blueTranslator().admit(t.Context(), k.Erase(), web(name)); pending.IsRejection(err) != rejected {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDesired: a copy is identified by its key, its labels and annotations,
// whatever the kind returns.
func TestDesired(t *testing.T) {
	o := web("web")
	desired, err := blueTranslator().desired(t.Context(), kindstest.Plain().Erase(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := client.ObjectKeyFromObject(desired); got != o.SuperKey {
		t.Errorf("the key is %s, want %s", got, o.SuperKey)
	}
	if origin := translate.OriginOf(desired); origin.Cluster != kindstest.Blue().Key || origin.UID != "uid" || origin.Namespace != "default" {
		t.Errorf("the origin is %+v", origin)
	}
	if hostname := desired.(*corev1.Pod).Spec.Hostname; hostname != "web of blue" {
		t.Errorf("the host name is %q", hostname)
	}
}

func TestRejectedTranslations(t *testing.T) {
	cause := errors.New("no such field")
	k := kindstest.Plain()
	k.Desired = func(kinds.View, *corev1.Pod) (*corev1.Pod, error) { return nil, kinds.EvictionError{Err: cause} }
	k.Omitted = func(kinds.View, *corev1.Pod) error { return cause }
	_, err := blueTranslator().desired(t.Context(), k.Erase(), web("web"))
	if !pending.IsRejection(err) || !errors.As(err, new(kinds.EvictionError)) {
		t.Errorf("desired returns %v", err)
	}
	if err := blueTranslator().omitted(t.Context(), k.Erase(), web("web")); !pending.IsRejection(err) || !errors.Is(err, cause) {
		t.Errorf("omitted returns %v", err)
	}
}
