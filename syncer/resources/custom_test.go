package resources

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// object is a JSON object.
type object = map[string]any

// aWidget returns a custom resource with these fields.
func aWidget(meta metav1.ObjectMeta, fields object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object{}}
	maps.Copy(u.Object, fields)
	u.SetGroupVersionKind(widget)
	u.SetNamespace(meta.Namespace)
	u.SetName(meta.Name)
	u.SetUID(meta.UID)
	u.SetLabels(meta.Labels)
	u.SetAnnotations(meta.Annotations)
	return u
}

func customDownOf(t *testing.T, status bool) kinds.Down[*unstructured.Unstructured] {
	t.Helper()
	return kindOf[kinds.Down[*unstructured.Unstructured]](t, Custom(kinds.CustomResource{
		GVK: widget, Direction: tenancyv1alpha1.SyncDown, Namespaced: true, Status: status,
	}))
}

func customUpOf(t *testing.T, namespaced, status bool) kinds.Up[*unstructured.Unstructured] {
	t.Helper()
	return kindOf[kinds.Up[*unstructured.Unstructured]](t, Custom(kinds.CustomResource{
		GVK: widget, Direction: tenancyv1alpha1.SyncUp, Namespaced: namespaced, Status: status,
	}))
}

func TestCustomKinds(t *testing.T) {
	for _, status := range []bool{true, false} {
		d := customDownOf(t, status)
		if d.Name != "Widget.example.com" || d.Object.GroupVersionKind() != widget || d.List.GetObjectKind().GroupVersionKind().Kind != "WidgetList" {
			t.Errorf("down: %s, %s, %s", d.Name, d.Object.GroupVersionKind(), d.List.GetObjectKind().GroupVersionKind())
		}
		if (d.Status != nil) != status || (d.Same != nil) != status || (d.Back != nil) == status {
			t.Errorf("with a status of its own: %t, it is synced up by Status: %t, by Back: %t", status, d.Status != nil, d.Back != nil)
		}
		for _, namespaced := range []bool{true, false} {
			u := customUpOf(t, namespaced, status)
			if u.Name != "Widget.example.com" || u.Class == namespaced || (u.Status != nil) != status || u.Expires || u.Node {
				t.Errorf("up, namespaced: %t, with a status of its own: %t: %+v", namespaced, status, u)
			}
		}
	}
}

func TestCustomDown(t *testing.T) {
	tenant := aWidget(meta("w"), object{
		"spec": object{"size": int64(3), "list": []any{"a", object{"b": "c"}}}, "data": "x", "status": object{"ready": true},
	})
	for _, status := range []bool{true, false} {
		k := customDownOf(t, status)
		was := clone(tenant)
		got := down(t, k, tenant)
		if diff := cmp.Diff(object{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"spec": object{"size": int64(3), "list": []any{"a", object{"b": "c"}}}, "data": "x",
		}, fieldsOf(got, got.GroupVersionKind()).Object); diff != "" {
			t.Errorf("with a status of its own: %t, the copy is (-want +got):\n%s", status, diff)
		}
		if got.GetNamespace() != superDefault || got.GetName() != "w" || got.GetUID() != "" || got.GetAnnotations()[names.UID] != "tenant-uid" {
			t.Errorf("the copy's metadata are %v", got.Object["metadata"])
		}
		scribbleJSON(got.Object)
		unchanged(t, "the tenant's object", was, tenant)
	}
}

// TestCustomIsOfItsKind checks that the kind is that of the custom resource,
// not the one that the object states.
func TestCustomIsOfItsKind(t *testing.T) {
	tenant := aWidget(meta("w"), object{"roleRef": object{"name": "cluster-admin"}})
	tenant.SetAPIVersion("rbac.authorization.k8s.io/v1")
	tenant.SetKind("ClusterRoleBinding")
	if got := down(t, customDownOf(t, true), tenant); got.GetAPIVersion() != "example.com/v1" || got.GetKind() != "Widget" {
		t.Errorf("the copy is a %s of %s", got.GetKind(), got.GetAPIVersion())
	}
}

// TestCustomDownMerge checks that the copy gets the tenant's fields, and keeps
// its metadata and status.
func TestCustomDownMerge(t *testing.T) {
	k := customDownOf(t, true)
	desired, err := k.Desired(view, aWidget(meta("w"), object{"spec": object{"size": int64(4)}, "new": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	wasDesired := clone(desired)
	super := aWidget(superMeta("w"), object{
		"spec": object{"size": int64(3), "color": "red"}, "old": "1", "status": object{"ready": true},
	})
	k.Merge(super, desired)
	want := aWidget(superMeta("w"), object{
		"spec": object{"size": int64(4)}, "new": "1", "status": object{"ready": true},
	})
	unchanged(t, "the copy, other than it should be,", want, super)
	scribbleJSON(super.Object)
	unchanged(t, "what is desired", wasDesired, desired)
}

// TestCustomDownStatus checks that the status is synced up in the same way with
// and without a subresource, without the super cluster's names.
func TestCustomDownStatus(t *testing.T) {
	super := aWidget(superMeta("w"), object{
		"spec": object{"size": int64(9)},
		"status": object{
			"ready": true, "count": int64(2), "ratio": 0.5, "none": nil,
			"message": "made in " + superDefault,
			"conditions": []any{
				object{"message": "of " + blue.Key + " in " + blue.Key + "-other"},
				[]any{superDefault + "/w"},
			},
		},
	})
	wantStatus := object{
		"ready": true, "count": int64(2), "ratio": 0.5, "none": nil,
		"message": "made in default",
		"conditions": []any{
			object{"message": "of blue in other"},
			[]any{"default/w"},
		},
	}
	for name, write := range map[string]func(kinds.View, *unstructured.Unstructured, *unstructured.Unstructured){
		"with a subresource":    customDownOf(t, true).Status,
		"without a subresource": customDownOf(t, false).Back,
	} {
		t.Run(name, func(t *testing.T) {
			wasSuper := clone(super)
			tenant := aWidget(meta("w"), object{"spec": object{"size": int64(3)}, "status": object{"old": true}})
			write(view, tenant, super)
			unchanged(t, "the tenant's object, other than it should be,",
				aWidget(meta("w"), object{"spec": object{"size": int64(3)}, "status": wantStatus}), tenant)
			unchanged(t, "the copy", wasSuper, super)
			scribbleJSON(tenant.Object)
			unchanged(t, "the copy, by writing into the tenant's,", wasSuper, super)

			text := aWidget(superMeta("w"), object{"status": "in " + superDefault})
			write(view, tenant, text)
			if tenant.Object["status"] != "in default" {
				t.Errorf("a status that is a text is %v", tenant.Object["status"])
			}
			write(view, tenant, aWidget(superMeta("w"), nil))
			if status, ok := tenant.Object["status"]; ok {
				t.Errorf("of none, the status is %v", status)
			}
		})
	}
}

// TestCustomDownObserved checks that a tenant reads the generation of its own
// object where a controller has written that of the copy. Without a subresource
// a status changes the generation, and would be written again and again.
func TestCustomDownObserved(t *testing.T) {
	status := func(current, older int64) object {
		return object{
			"observedGeneration": current, "size": int64(5), "parents": []any{object{"conditions": []any{
				object{"type": "Accepted", "observedGeneration": current}, object{"type": "Programmed", "observedGeneration": older},
			}}},
		}
	}
	super := aWidget(superMeta("w"), object{"status": status(5, 4)})
	super.SetGeneration(5)
	for _, c := range []struct {
		name  string
		write func(kinds.View, *unstructured.Unstructured, *unstructured.Unstructured)
		want  object
	}{
		{"with a subresource", customDownOf(t, true).Status, status(2, 0)},
		{"without a subresource", customDownOf(t, false).Back, status(5, 4)},
	} {
		t.Run(c.name, func(t *testing.T) {
			tenant, wasSuper := aWidget(meta("w"), nil), clone(super)
			tenant.SetGeneration(2)
			c.write(view, tenant, super)
			if diff := cmp.Diff(c.want, tenant.Object["status"]); diff != "" {
				t.Errorf("the tenant's status is (-want +got):\n%s", diff)
			}
			unchanged(t, "the copy", wasSuper, super)
		})
	}
}

func TestCustomDownSame(t *testing.T) {
	same := customDownOf(t, true).Same
	a := aWidget(meta("w"), object{"spec": "1", "status": object{"ready": true}})
	b := aWidget(meta("w"), object{"spec": "2", "status": object{"ready": true}})
	c := aWidget(meta("w"), object{"spec": "1", "status": object{"ready": false}})
	none := aWidget(meta("w"), nil)
	if !same(a, b) || same(a, c) || same(a, none) || !same(none, none) {
		t.Errorf("another spec: %t, another status: %t, none: %t, none twice: %t", same(a, b), same(a, c), same(a, none), same(none, none))
	}
}

func TestCustomUp(t *testing.T) {
	super := aWidget(superMeta("w"), object{
		"spec": object{"in": superDefault, "list": []any{blue.Key + "-other"}}, "status": object{"message": "for " + blue.Key},
	})
	super.SetLabels(map[string]string{"team": "platform", names.Public: "true", names.VCName: "blue"})
	super.SetAnnotations(map[string]string{"internal": superDefault})
	super.SetFinalizers([]string{"example.com/super"})
	super.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Pod", Name: "operator", UID: "x"}})
	wasSuper := clone(super)

	got := customUpOf(t, true, true).Desired(view, super)
	want := aWidget(metav1.ObjectMeta{Namespace: "default", Name: "w", Labels: map[string]string{"team": "platform"}}, object{
		"spec": object{"in": "default", "list": []any{"other"}}, "status": object{"message": "for blue"},
	})
	unchanged(t, "what is shown, other than it should be,", want, got)
	scribbleJSON(got.Object)
	unchanged(t, "the super cluster's object", wasSuper, super)

	root := aWidget(metav1.ObjectMeta{Name: "w", UID: "super-uid"}, object{"spec": "1"})
	shown := customUpOf(t, false, true).Desired(kinds.View{Tenant: blue}, root)
	unchanged(t, "what is shown without a namespace, other than it should be,",
		aWidget(metav1.ObjectMeta{Name: "w"}, object{"spec": "1"}), shown)
}

func TestCustomUpMerge(t *testing.T) {
	desired := aWidget(metav1.ObjectMeta{Name: "w", Labels: map[string]string{"team": "platform"}}, object{
		"spec": object{"size": int64(4)}, "status": object{"ready": true},
	})
	tenantMeta := meta("w")
	tenantMeta.Labels, tenantMeta.Annotations = map[string]string{"own": "1"}, map[string]string{"own": "1"}
	for name, tc := range map[string]struct {
		status                bool
		afterMerge, afterBoth object
	}{
		"with a subresource": {
			status:     true,
			afterMerge: object{"spec": object{"size": int64(4)}, "status": object{"old": true}},
			afterBoth:  object{"spec": object{"size": int64(4)}, "status": object{"ready": true}},
		},
		"without a subresource": {
			afterMerge: object{"spec": object{"size": int64(4)}, "status": object{"ready": true}},
			afterBoth:  object{"spec": object{"size": int64(4)}, "status": object{"ready": true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := customUpOf(t, true, tc.status)
			wasDesired := clone(desired)
			tenant := aWidget(tenantMeta, object{"spec": object{"size": int64(3)}, "more": "1", "status": object{"old": true}})
			merged := tenantMeta
			merged.Labels = desired.GetLabels()
			k.Merge(tenant, desired)
			unchanged(t, "after Merge the tenant's object, other than it should be,", aWidget(merged, tc.afterMerge), tenant)
			if k.Status != nil {
				k.Status(tenant, desired)
			}
			unchanged(t, "after Status the tenant's object, other than it should be,", aWidget(merged, tc.afterBoth), tenant)
			scribbleJSON(tenant.Object)
			unchanged(t, "what is desired", wasDesired, desired)
		})
	}
}

// scribbleJSON overwrites everything that a JSON value can reach.
func scribbleJSON(value any) {
	switch value := value.(type) {
	case object:
		for k, v := range value {
			scribbleJSON(v)
			value[k] = "scribble"
		}
	case []any:
		for i, v := range value {
			scribbleJSON(v)
			value[i] = "scribble"
		}
	}
}
