package kinds_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

// shown returns a kind that is synced up.
func shown() kinds.Up[*corev1.Event] {
	return kinds.Up[*corev1.Event]{Name: "Event", Object: &corev1.Event{}, List: &corev1.EventList{}}
}

// viewBlue returns what hooks see of the tenant.
func viewBlue() kinds.View { return kinds.View{Tenant: kindstest.Blue()} }

func TestDownDefaults(t *testing.T) {
	k := kindstest.Plain().Erase()
	d := k.Down
	if k.Name != "Pod" || k.Up != nil || d == nil {
		t.Fatalf("the kind is %+v", k)
	}
	key := client.ObjectKey{Namespace: "default", Name: "web"}
	superKey := client.ObjectKey{Namespace: "team-71a1c3-blue-default", Name: "web"}
	if got := d.SuperKey(kindstest.Blue(), key); got != superKey {
		t.Errorf("the super key of %v is %v, want %v", key, got, superKey)
	}
	super := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: superKey.Namespace, Name: superKey.Name, Annotations: map[string]string{names.Namespace: "default"},
	}}
	if got := d.TenantKey(super); got != key {
		t.Errorf("the tenant's key is %v, want %v", got, key)
	}
	if d.Replace(kindstest.Named("old"), kindstest.Named("new")) || d.Skip(kinds.View{}, kindstest.Named("skipped")) {
		t.Error("an object is replaced or skipped without a hook")
	}
	if d.Admit != nil || d.References != nil || d.Status != nil || d.Same != nil || d.Mirror != nil || d.OnDemand ||
		d.Adopt(kindstest.Named("web")) {
		t.Errorf("a hook without a default is set: %+v", d)
	}
}

func TestDownErasure(t *testing.T) {
	d := kindstest.Rich().Erase().Down

	desired, err := d.Desired(viewBlue(), kindstest.Named("web"))
	if want := (&corev1.Pod{Spec: corev1.PodSpec{Hostname: "web of blue"}}); err != nil || !cmp.Equal(want, desired) {
		t.Errorf("desired is %v, %v; want %v", desired, err, want)
	}
	if err := d.Admit(viewBlue(), kindstest.Named("unwanted")); err == nil || err.Error() != "not for blue" {
		t.Errorf("Admit returned %v", err)
	}
	if err := d.Admit(viewBlue(), kindstest.Named("web")); err != nil {
		t.Errorf("Admit returned %v", err)
	}
	merged := kindstest.Named("web")
	d.Merge(merged, desired)
	if merged.Spec.Hostname != "web of blue" {
		t.Errorf("merged is %v", merged)
	}
	key := client.ObjectKey{Namespace: "default", Name: "web"}
	if got, want := d.SuperKey(kindstest.Blue(), key), (client.ObjectKey{Namespace: "blue", Name: "super-web"}); got != want {
		t.Errorf("the super key is %v, want %v", got, want)
	}
	if got, want := d.TenantKey(kindstest.Named("web")), (client.ObjectKey{Name: "tenant-web"}); got != want {
		t.Errorf("the tenant's key is %v, want %v", got, want)
	}
	if !d.Replace(kindstest.Named("old"), kindstest.Named("new")) || d.Replace(kindstest.Named("new"), kindstest.Named("old")) {
		t.Error("Replace does not get the copy and the desired object, in this order")
	}
	if !d.Skip(kinds.View{}, kindstest.Named("skipped")) || d.Skip(kinds.View{}, kindstest.Named("web")) {
		t.Error("Skip is not asked")
	}
	if diff := cmp.Diff([]kinds.Reference{{Kind: "Secret", Name: "web"}}, d.References(kindstest.Named("web"))); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if made, web := d.Adopt(kindstest.Named("made")), d.Adopt(kindstest.Named("web")); !d.OnDemand || !made || web {
		t.Errorf("OnDemand is %t, what was made is adopted: %t, another: %t", d.OnDemand, made, web)
	}

	tenant, super := kindstest.Named("web"), kindstest.Named("web")
	super.Status.Message = "fine"
	d.Status(viewBlue(), tenant, super)
	if tenant.Status.Message != "fine for blue" || super.Status.Message != "fine" {
		t.Errorf("after Status the tenant's object has %q, the copy %q", tenant.Status.Message, super.Status.Message)
	}
	if d.Same(tenant, super) || !d.Same(super, super.DeepCopy()) {
		t.Error("Same is not asked")
	}
}

func TestMirrorErasure(t *testing.T) {
	m := kindstest.Rich().Erase().Down.Mirror
	if !m.Started(kindstest.Named("started")) || m.Started(kindstest.Named("web")) {
		t.Error("Started is not asked")
	}
	pod := kindstest.Named("web")
	if got := m.Bound(pod, "node-1"); m.Node(got) != "node-1" || m.Node(pod) != "" {
		t.Errorf("bound is on node %q, and was on %q", m.Node(got), m.Node(pod))
	}
	if m.Ended(pod) || !m.Ended(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}) {
		t.Error("Ended is not asked")
	}
	if m.GracePeriodSeconds(pod) != nil {
		t.Errorf("the grace period is %d, want none", *m.GracePeriodSeconds(pod))
	}
	pod.DeletionGracePeriodSeconds = new(int64(5))
	if got := m.GracePeriodSeconds(pod); got == nil || *got != 5 {
		t.Errorf("the grace period is %v, want 5", got)
	}
}

// TestNothingIsANilInterface checks that a nil pointer of a kind's own type
// becomes a nil interface.
func TestNothingIsANilInterface(t *testing.T) {
	why := errors.New("no")
	failing := kindstest.Plain()
	failing.Desired = func(kinds.View, *corev1.Pod) (*corev1.Pod, error) { return nil, why }
	if got, err := failing.Erase().Down.Desired(viewBlue(), kindstest.Named("web")); got != nil || !errors.Is(err, why) {
		t.Errorf("desired is %#v with error %v, want nil with %v", got, err, why)
	}

	hiding := kinds.Up[*corev1.Event]{Desired: func(kinds.View, *corev1.Event) *corev1.Event { return nil }}
	if got := hiding.Erase().Up.Desired(kinds.View{}, &corev1.Event{}); got != nil {
		t.Errorf("the desired object is %#v, want nil", got)
	}
	untyped := kinds.Up[client.Object]{Desired: func(kinds.View, client.Object) client.Object { return nil }}
	if got := untyped.Erase().Up.Desired(kinds.View{}, &corev1.Event{}); got != nil {
		t.Errorf("the desired object without its type is %#v, want nil", got)
	}
}

func TestUpErasure(t *testing.T) {
	shown := kinds.Up[*corev1.Node]{
		Name:   "Node",
		Object: &corev1.Node{},
		List:   &corev1.NodeList{},
		Desired: func(v kinds.View, super *corev1.Node) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: super.Name + " in " + v.Namespace}}
		},
		Merge:   func(tenant, desired *corev1.Node) { tenant.Labels = desired.Labels },
		Status:  func(tenant, desired *corev1.Node) { tenant.Status = desired.Status },
		Node:    true,
		Expires: true,
	}
	k := shown.Erase()
	if k.Name != "Node" || k.Down != nil || !k.Up.Node || !k.Up.Expires {
		t.Errorf("the kind is %+v", k)
	}
	got := k.Up.Desired(kinds.View{Namespace: "default"}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	if got == nil || got.GetName() != "n in default" {
		t.Errorf("the desired object is %v", got)
	}

	tenant := &corev1.Node{}
	desired := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}},
		Status:     corev1.NodeStatus{Phase: corev1.NodeRunning},
	}
	k.Up.Merge(tenant, desired)
	if tenant.Labels["a"] != "1" || tenant.Status.Phase != "" {
		t.Errorf("after Merge the tenant's node is %v", tenant)
	}
	k.Up.Status(tenant, desired)
	if tenant.Status.Phase != corev1.NodeRunning {
		t.Errorf("after Status the tenant's node is %v", tenant)
	}

	shown.Status, shown.Node, shown.Expires = nil, false, false
	if k := shown.Erase(); k.Up.Status != nil || k.Up.Node || k.Up.Expires {
		t.Errorf("a hook without a default is set: %+v", k.Up)
	}
}

// TestUpAndBack checks kinds that tenants share, choose from, or may change.
func TestUpAndBack(t *testing.T) {
	volume := kinds.Up[*corev1.PersistentVolume]{
		Name: "PersistentVolume", Object: &corev1.PersistentVolume{}, List: &corev1.PersistentVolumeList{},
		Class:     true,
		Namespace: func(super *corev1.PersistentVolume) string { return super.Spec.ClaimRef.Namespace },
		Back: func(_ kinds.View, super, tenant *corev1.PersistentVolume) {
			super.Spec.PersistentVolumeReclaimPolicy = tenant.Spec.PersistentVolumeReclaimPolicy
		},
		Replace: func(tenant, desired *corev1.PersistentVolume) bool {
			return tenant.Spec.StorageClassName == "old" && desired.Spec.StorageClassName == "new"
		},
	}
	u := volume.Erase().Up
	if !u.Class {
		t.Error("it is not a class")
	}
	super, tenant := &corev1.PersistentVolume{}, &corev1.PersistentVolume{}
	super.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "of-the-claim"}
	if got := u.Namespace(super); got != "of-the-claim" {
		t.Errorf("it belongs to namespace %q", got)
	}
	tenant.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	u.Back(kinds.View{}, super, tenant)
	if super.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Error("Back does not write into the super cluster's")
	}
	was, wanted := &corev1.PersistentVolume{}, &corev1.PersistentVolume{}
	was.Spec.StorageClassName, wanted.Spec.StorageClassName = "old", "new"
	if !u.Replace(was, wanted) || u.Replace(wanted, was) {
		t.Error("Replace does not get what the tenant has and what is desired, in this order")
	}

	volume.Class, volume.Namespace, volume.Back, volume.Replace = false, nil, nil, nil
	u = volume.Erase().Up
	super.Namespace = "its-own"
	if got := u.Namespace(super); got != "its-own" {
		t.Errorf("by default it belongs to namespace %q", got)
	}
	if u.Class || u.Back != nil || u.Replace(was, wanted) {
		t.Errorf("a hook without a default is set: %+v", u)
	}
}

func TestDownBackAndSubresources(t *testing.T) {
	k := kindstest.Plain()
	if d := k.Erase().Down; d.Back != nil || d.Subresources != nil || d.Admit != nil {
		t.Errorf("a hook without a default is set: %+v", d)
	}
	k.Back = func(v kinds.View, tenant, super *corev1.Pod) {
		tenant.Spec.Hostname = super.Spec.Hostname + " for " + v.Tenant.Name
	}
	k.Admit = func(v kinds.View, tenant *corev1.Pod) error { return errors.New(tenant.Name + " of " + v.Tenant.Name) }
	k.Subresources = []kinds.Subresource[*corev1.Pod]{
		{Name: "resize", Merge: func(v kinds.View, super, tenant *corev1.Pod) {
			super.Spec.Hostname = tenant.Name + " resized by " + v.Tenant.Name
		}},
		{
			Name: "ephemeralcontainers", Merge: func(_ kinds.View, super, _ *corev1.Pod) { super.Spec.Subdomain = "debugged" },
			Parts: func(super, merged *corev1.Pod) []*corev1.Pod { return []*corev1.Pod{super, merged} },
		},
	}
	d := k.Erase().Down

	tenant, super := kindstest.Named("web"), kindstest.Named("web")
	super.Spec.Hostname = "chosen"
	d.Back(viewBlue(), tenant, super)
	if tenant.Spec.Hostname != "chosen for blue" || super.Spec.Hostname != "chosen" {
		t.Errorf("after Back the tenant's object has %q, the copy %q", tenant.Spec.Hostname, super.Spec.Hostname)
	}
	if err := d.Admit(viewBlue(), kindstest.Named("web")); err == nil || err.Error() != "web of blue" {
		t.Errorf("Admit returned %v", err)
	}
	var subs []string
	for _, sub := range d.Subresources {
		subs = append(subs, sub.Name)
		sub.Merge(viewBlue(), super, tenant)
	}
	if diff := cmp.Diff([]string{"resize", "ephemeralcontainers"}, subs); diff != "" {
		t.Errorf("subresources, in their order (-want +got):\n%s", diff)
	}
	if super.Spec.Hostname != "web resized by blue" || super.Spec.Subdomain != "debugged" {
		t.Errorf("after the subresources the copy has %q, %q", super.Spec.Hostname, super.Spec.Subdomain)
	}
	if one, two := d.Subresources[0].Parts(super, tenant), d.Subresources[1].Parts(super, tenant); one != nil || len(two) != 2 {
		t.Errorf("the parts are %v and %v, want none and two", one, two)
	}
}

func TestWholeAreTheKindsThatFlowUpOrHaveClaims(t *testing.T) {
	event, node, claiming := &corev1.Event{}, &corev1.Node{}, kindstest.Plain()
	claiming.Object = &corev1.Pod{}
	claiming.Claims = func(super *corev1.Pod) []string { return []string{super.Name} }
	got := kinds.Whole([]kinds.Flow{
		kindstest.Plain(), kinds.Up[*corev1.Event]{Object: event}, claiming, kindstest.Rich(), kinds.Up[*corev1.Node]{Object: node},
	})
	if diff := cmp.Diff([]client.Object{event, claiming.Object, node}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if claims := claiming.Erase().Down.Claims(kindstest.Named("web")); len(claims) != 1 || claims[0] != "web" {
		t.Errorf("the claims are %v", claims)
	}
}

func TestFreshIsEmptyAndItsOwn(t *testing.T) {
	k := kindstest.Plain().Erase()
	a := k.Fresh()
	a.SetName("web")
	if b := k.Fresh(); b.GetName() != "" || k.Object.GetName() != "" {
		t.Errorf("after one object was named, a fresh one is called %q, the kind's own %q", b.GetName(), k.Object.GetName())
	}
	if _, ok := a.(*corev1.Pod); !ok {
		t.Errorf("a fresh object is a %T", a)
	}
}
