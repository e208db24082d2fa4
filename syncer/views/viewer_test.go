package views_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/views"
)

// superDefault is the super cluster's namespace of the tenant's namespace
// default.
const superDefault = "team-71a1c3-blue-default"

// blue returns the tenant whose views these are.
func blue() translate.Tenant {
	t := kindstest.Blue()
	t.UID = "vc-uid"
	return t
}

// pods returns a kind with claims, addresses and a digest: the number of
// copies.
func pods() *kinds.Kind {
	k := kindstest.Plain()
	k.Claims = func(super *corev1.Pod) []string { return []string{super.Spec.Hostname} }
	k.Digest = func(copies []*corev1.Pod) any { return len(copies) }
	k.Mirror = kindstest.Rich().Mirror
	k.Mirror.Addresses = func(super *corev1.Pod) []string { return []string{super.Status.PodIP} }
	return kindstest.Typed(k)
}

// namespaces returns the kind of namespaces.
func namespaces() *kinds.Kind {
	return kindstest.Typed(kinds.Down[*corev1.Namespace]{
		Name: session.NamespaceKind, Object: &corev1.Namespace{}, List: &corev1.NamespaceList{},
	})
}

// viewOf returns a view of the tenant's namespace default in a super cluster
// with these pods.
func viewOf(t *testing.T, copies ...*corev1.Pod) (*views.Viewer, kinds.View) {
	t.Helper()
	of, pods, namespaces := cachestest.NewReader(), pods(), namespaces()
	cachestest.Hold(of, pods, kindstest.Objects(copies)...)
	ns := &corev1.Namespace{}
	ns.Name, ns.Annotations = superDefault, map[string]string{names.VCUID: "vc-uid"}
	cachestest.Hold(of, namespaces, ns)
	super := &session.SuperCluster{
		Caches:  map[kinds.Source]*caches.Reader{kinds.Copies: of},
		Builtin: map[string]*kinds.Kind{pods.Name: pods, namespaces.Name: namespaces},
	}
	viewer := views.NewViewer(session.Assemble(t.Context(), super, blue(), &session.TenantObjects{}))
	return viewer, viewer.In(t.Context(), "default")
}

// superPod returns a pod of the super cluster that claims a host name and has
// an address.
func superPod(namespace, name, claim, address string, of translate.Tenant) *corev1.Pod {
	pod := kindstest.PodIn(namespace, name)
	pod.Spec.Hostname, pod.Status.PodIP = claim, address
	if of.Key != "" {
		pod.Annotations = map[string]string{names.Cluster: of.Key}
	}
	return pod
}

func TestCopy(t *testing.T) {
	_, view := viewOf(t,
		superPod(superDefault, "web", "", "", blue()),
		superPod(superDefault, "theirs", "", "", translate.Tenant{}),
		superPod("other", "elsewhere", "", "", blue()))
	for name, want := range map[string]bool{"web": true, "theirs": false, "elsewhere": false, "none": false} {
		if got := view.Copy("Pod", name); (got != nil) != want {
			t.Errorf("the copy of %s is %v, want one: %t", name, got, want)
		}
	}
	if got := view.Copy("Secret", "web"); got != nil {
		t.Errorf("the copy of a kind that is not synced is %v", got)
	}
}

// gateways returns a kind that tenants are offered.
func gateways() *kinds.Kind {
	return kindstest.Typed(kinds.Up[*networkingv1.Ingress]{
		Name: "Gateway", Object: &networkingv1.Ingress{}, List: &networkingv1.IngressList{}, Offered: true,
	})
}

// TestRivals: an object with the same claim is a rival if it is in a namespace
// that is not the tenant's, whatever its kind is.
func TestRivals(t *testing.T) {
	viewer, view := viewOf(t,
		superPod(superDefault, "own", "example.com", "", blue()),
		superPod("another-tenants", "rival", "example.com", "", translate.Tenant{Key: "another"}),
		superPod("another-tenants", "other-claim", "example.org", "", translate.Tenant{Key: "another"}))
	if got, err := view.Rivals("example.com"); err == nil {
		t.Errorf("rivals are %v, although it is not known which kinds have claims", got)
	}
	viewer.Standing.Complete()
	rivals := func() []string {
		t.Helper()
		found, err := view.Rivals("example.com")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rival := range found {
			got = append(got, rival.GetName())
		}
		return got
	}
	if diff := cmp.Diff([]string{"rival"}, rivals()); diff != "" {
		t.Errorf("rivals (-want +got):\n%s", diff)
	}

	routes := kindstest.Typed(kinds.Down[*networkingv1.Ingress]{
		Name: "Route", Object: &networkingv1.Ingress{}, List: &networkingv1.IngressList{},
		Claims: func(super *networkingv1.Ingress) []string { return []string{super.Spec.Rules[0].Host} },
	})
	viewer.Standing.AddKind(routes)
	if got, err := view.Rivals("example.com"); err == nil {
		t.Errorf("rivals are %v, although the objects of a kind are not known", got)
	}
	route := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "example.com"}}}}
	route.Namespace, route.Name = "platform", "route"
	cachestest.Hold(viewer.Caches[kinds.Copies], routes, route)
	if diff := cmp.Diff([]string{"rival", "route"}, rivals()); diff != "" {
		t.Errorf("rivals of two kinds (-want +got):\n%s", diff)
	}
}

// TestOffered: published objects are offered, once all are known.
func TestOffered(t *testing.T) {
	viewer, view := viewOf(t)
	if got := view.Offered("Gateway"); got != nil {
		t.Errorf("%v are offered of a kind that is not watched", got)
	}
	viewer.Standing.AddKind(gateways())
	if got := view.Offered("Gateway"); got != nil {
		t.Errorf("%v are offered before any is known", got)
	}
	gateway := func(name string, labels map[string]string) *networkingv1.Ingress {
		g := &networkingv1.Ingress{}
		g.Namespace, g.Name, g.Labels = "platform", name, labels
		return g
	}
	public := map[string]string{names.Public: "true"}
	cachestest.Hold(viewer.Caches[kinds.Copies], gateways(), gateway("b", public), gateway("a", public), gateway("hidden", nil))
	want := []client.ObjectKey{{Namespace: "platform", Name: "a"}, {Namespace: "platform", Name: "b"}}
	if diff := cmp.Diff(want, view.Offered("Gateway")); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
}

func TestRunsAt(t *testing.T) {
	_, view := viewOf(t,
		superPod(superDefault, "web", "", "10.1.2.3", blue()),
		superPod("another-tenants", "web", "", "10.1.2.4", translate.Tenant{Key: "another"}))
	for address, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.1.2.4": false, "10.1.2.5": false} {
		if got := view.RunsAt(address); got != want {
			t.Errorf("a pod of the tenant has %s: %t, want %t", address, got, want)
		}
	}
}

// TestDigest: a digest covers the copies of the namespace, and is computed
// again only when it was forgotten.
func TestDigest(t *testing.T) {
	web := superPod(superDefault, "web", "", "", blue())
	viewer, view := viewOf(t, web, superPod(superDefault, "no-copy", "", "", translate.Tenant{}), superPod("other", "web", "", "", blue()))
	if got := view.Digest("Pod"); got != 1 {
		t.Errorf("the digest is %v, want that of one copy", got)
	}
	for kind, want := range map[string]any{session.NamespaceKind: nil, "Secret": nil} {
		if got := view.Digest(kind); got != want {
			t.Errorf("the digest of %s is %v, want none", kind, got)
		}
	}
	cachestest.Hold(viewer.Caches[kinds.Copies], pods(), client.Object(superPod(superDefault, "second", "", "", blue())))
	if got := view.Digest("Pod"); got != 1 {
		t.Errorf("the digest is %v, want the known one", got)
	}
	viewer.Forget("Pod", "default")
	if got := view.Digest("Pod"); got != 2 {
		t.Errorf("the digest is %v, want that of two copies", got)
	}
}
