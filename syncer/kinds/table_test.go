package kinds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

// ingress is a kind of a group with a plural of its own.
var ingress = kinds.Down[*networkingv1.Ingress]{
	Name: "Ingress", Object: &networkingv1.Ingress{}, List: &networkingv1.IngressList{},
	Summary: "down", ClusterScoped: true, Optional: true,
}

func TestTable(t *testing.T) {
	table, err := kinds.Table([]kinds.Flow{ingress, shown()}, clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	first := table[0]
	if first.GVK != networkingv1.SchemeGroupVersion.WithKind("Ingress") || first.Resource != "ingresses" ||
		first.GroupResource().String() != "ingresses.networking.k8s.io" {
		t.Errorf("got %s, %s, %s", first.GVK, first.Resource, first.GroupResource())
	}
	if first.Summary != "down" || !first.ClusterScoped || !first.Optional {
		t.Errorf("a declaration is lost: %+v", first)
	}
	if table[1].GVK.Kind != "Event" || table[1].ClusterScoped || table[1].Optional {
		t.Errorf("got %+v", table[1])
	}
}

func TestTableRejects(t *testing.T) {
	for want, flows := range map[string][]kinds.Flow{
		"two kinds have the name Ingress": {ingress, ingress},
		"find the kind of *v1.Pod":        {kindstest.Plain()},
	} {
		scheme := runtime.NewScheme()
		if err := networkingv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		if _, err := kinds.Table(flows, scheme); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestModes(t *testing.T) {
	type modes = []tenancyv1alpha1.SyncMode
	down := func(optional, onDemand bool) *kinds.Kind {
		return kinds.Down[*corev1.Secret]{Optional: optional, OnDemand: onDemand}.Erase()
	}
	for name, tc := range map[string]struct {
		kind *kinds.Kind
		want modes
	}{
		"always":                  {down(false, false), nil},
		"optional":                {down(true, false), modes{"All", "Off"}},
		"on demand":               {down(false, true), modes{"Referenced", "All"}},
		"optional, and on demand": {down(true, true), modes{"Referenced", "All", "Off"}},
		"up":                      {shown().Erase(), nil},
		"up, optional":            {kinds.Up[*corev1.Event]{Optional: true}.Erase(), modes{"All", "Off"}},
	} {
		if diff := cmp.Diff(tc.want, tc.kind.Modes()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
