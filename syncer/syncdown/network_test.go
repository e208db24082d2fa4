package syncdown

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

var errUnusable = errors.New("unusable")

// only is a table in which one network can be used.
type only string

func (only) Record(string) string     { return "" }
func (only) Name(named string) string { return cmp.Or(named, "default") }

func (t only) Use(name string) (release func(), err error) {
	if name != string(t) {
		return nil, errUnusable
	}
	return func() {}, nil
}

func (only) Known() error { return nil }

// unread is a table before the networks have been read.
type unread struct{ only }

func (unread) Known() error { return errUnusable }

// networked returns a kind whose objects belong to networks.
func networked(mirror *kinds.Mirror[*corev1.Pod]) *kinds.Kind {
	k := kindstest.Plain()
	k.Network = func(pod *corev1.Pod) string { return pod.Labels[networkv1.Label] }
	k.Mirror = mirror
	return k.Erase()
}

// on returns the objects of a pod that names one network, and whose copy is in
// another; none if that is empty.
func on(named, copied, uid string) session.Objects {
	o := web("web")
	o.Tenant.SetLabels(map[string]string{networkv1.Label: named})
	if copied == "" {
		return o
	}
	super := kindstest.PodIn(o.SuperKey.Namespace, "web")
	super.Annotations = map[string]string{names.Cluster: kindstest.Blue().Key, names.UID: uid}
	super.Labels = map[string]string{networkv1.Label: copied}
	o.Super = super
	return o
}

func TestJoinNetwork(t *testing.T) {
	mirrored, plain := networked(kindstest.Rich().Mirror), networked(nil)
	for name, tc := range map[string]struct {
		kind *kinds.Kind
		of   session.Objects
		want string
	}{
		"none named":                    {mirrored, on("", "", ""), "default"},
		"named":                         {mirrored, on("vpc-1", "", ""), "vpc-1"},
		"named another later":           {mirrored, on("vpc-2", "vpc-1", "uid"), "vpc-1"},
		"the copy of an earlier object": {mirrored, on("vpc-2", "vpc-1", "other"), "vpc-2"},
		"of a kind that can change":     {plain, on("vpc-2", "vpc-1", "uid"), "vpc-2"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := blueTranslator()
			tr.networks = only("vpc-1")
			desired, err := tr.desired(t.Context(), tc.kind, tc.of)
			if err != nil {
				t.Fatal(err)
			}
			if got := desired.GetLabels()[networkv1.Label]; got != tc.want {
				t.Errorf("the copy is in network %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWithoutNetworks: the label stays in the tenant, as any other.
func TestWithoutNetworks(t *testing.T) {
	var desired client.Object
	desired, err := blueTranslator().desired(t.Context(), kindstest.Plain().Erase(), on("vpc-1", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := desired.GetLabels()[networkv1.Label]; ok {
		t.Errorf("the copy is in network %q", got)
	}
}

func TestUseNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		kind *kinds.Kind
		want error
	}{
		"usable":   {networked(nil), nil},
		"no kinds": {kindstest.Plain().Erase(), nil},
	} {
		if _, err := useNetwork(only("vpc-1"), tc.kind, on("vpc-1", "", "")); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := useNetwork(only("vpc-1"), networked(nil), on("vpc-2", "", "")); !errors.Is(err, errUnusable) {
		t.Errorf("of a network that cannot be used: %v", err)
	}
}

// TestAnyNetwork: what depends on the specs of networks has a copy in any
// network, as soon as these are known.
func TestAnyNetwork(t *testing.T) {
	of := networked(nil)
	of.Down.AnyNetwork = true
	if _, err := useNetwork(only("vpc-1"), of, on("vpc-2", "", "")); err != nil {
		t.Errorf("in a network that cannot be used: %v", err)
	}
	for name, tc := range map[string]struct {
		table networkTable
		kind  *kinds.Kind
		want  error
	}{
		"known": {only("vpc-1"), of, nil}, "unknown": {unread{"vpc-1"}, of, errUnusable}, "unknown, another kind": {unread{"vpc-1"}, networked(nil), nil},
	} {
		tr := blueTranslator()
		tr.networks = tc.table
		if _, err := tr.desired(t.Context(), tc.kind, on("vpc-1", "", "")); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// ensured records the networks that are ensured in namespaces.
type ensured []string

func (e *ensured) EnsureNetwork(_ context.Context, namespace, network string) error {
	*e = append(*e, namespace+"/"+network)
	return nil
}

func TestEnsureNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		kind *kinds.Kind
		want []string
	}{
		"what runs":         {networked(kindstest.Rich().Mirror), []string{"default/vpc-1"}},
		"what does not run": {networked(nil), nil},
		"another kind":      {kindstest.Plain().Erase(), nil},
	} {
		var got ensured
		if err := ensureNetwork(t.Context(), only("vpc-1"), &got, tc.kind, on("vpc-1", "", "")); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v are ensured, %v; want %v", name, got, err, tc.want)
		}
	}
}
