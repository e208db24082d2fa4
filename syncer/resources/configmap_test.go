package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestConfigMapGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ConfigMap]](t, ConfigMap())
	if !k.OnDemand || k.Adopt != nil {
		t.Errorf("on demand %t, adopt %t; want on demand alone", k.OnDemand, k.Adopt != nil)
	}
	tenant := &corev1.ConfigMap{
		ObjectMeta: meta("settings"),
		Data:       map[string]string{"a": "1"},
		BinaryData: map[string][]byte{"b": {2}},
		Immutable:  new(true),
	}
	want := &corev1.ConfigMap{Data: tenant.Data, BinaryData: tenant.BinaryData, Immutable: new(true)}
	got, err := k.Desired(view, tenant)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
}

// TestConfigMapKeys checks that the tenant's root CA is renamed, and that the
// copy's key maps back to it.
func TestConfigMapKeys(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ConfigMap]](t, ConfigMap())
	for tenantName, superName := range map[string]string{
		"settings":                "settings",
		"kube-root-ca.crt":        "tenant-kube-root-ca.crt",
		"tenant-kube-root-ca.crt": "tenant-tenant-kube-root-ca.crt",
	} {
		tenant := &corev1.ConfigMap{ObjectMeta: meta(tenantName)}
		super := down(t, k, tenant)
		if got, want := client.ObjectKeyFromObject(super), (client.ObjectKey{Namespace: superDefault, Name: superName}); got != want {
			t.Errorf("%s is synced down as %s, want %s", tenantName, got, want)
		}
		if got, want := k.TenantKey(super), client.ObjectKeyFromObject(tenant); got != want {
			t.Errorf("%s leads back to %s, want %s", superName, got, want)
		}
	}
}

func TestConfigMapMerge(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ConfigMap]](t, ConfigMap())
	super := &corev1.ConfigMap{
		ObjectMeta: superMeta("settings"),
		Data:       map[string]string{"a": "edited", "gone": "1"},
		BinaryData: map[string][]byte{"gone": {1}},
	}
	k.Merge(super, &corev1.ConfigMap{Data: map[string]string{"a": "1"}, Immutable: new(true)})
	want := &corev1.ConfigMap{
		ObjectMeta: superMeta("settings"), Data: map[string]string{"a": "1"}, Immutable: new(true),
	}
	if diff := cmp.Diff(want, super); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

func TestConfigMapReplace(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ConfigMap]](t, ConfigMap())
	one := func(immutable *bool) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {1}}, Immutable: immutable}
	}
	data, binary := one(new(true)), one(new(true))
	data.Data["a"] = "2"
	binary.BinaryData["b"] = []byte{2}
	labelled := one(new(true))
	labelled.Labels = map[string]string{"a": "1"}
	mutable := one(nil)
	mutable.Data["a"] = "2"

	tests := map[string]struct {
		super, desired *corev1.ConfigMap
		want           bool
	}{
		"mutable data is changed":                    {one(nil), data, false},
		"data with immutable false is changed":       {one(new(false)), data, false},
		"data that becomes immutable is changed":     {one(nil), one(new(true)), false},
		"equal immutable data stays":                 {one(new(true)), one(new(true)), false},
		"its metadata can be changed":                {one(new(true)), labelled, false},
		"immutable data that differs":                {one(new(true)), data, true},
		"immutable binary data that differs":         {one(new(true)), binary, true},
		"immutable in the copy only":                 {one(new(true)), one(nil), true},
		"immutable in the copy only, different data": {one(new(true)), mutable, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Replace(tt.super, tt.desired); got != tt.want {
				t.Errorf("Replace = %t, want %t", got, tt.want)
			}
		})
	}
}

// TestConfigMapOfNoTenant checks that an object that is not a copy has no
// tenant key.
func TestConfigMapOfNoTenant(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ConfigMap]](t, ConfigMap())
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: superDefault, Name: "kube-root-ca.crt"}}
	if got := k.TenantKey(own); got.Namespace != "" {
		t.Errorf("the super cluster's root CA leads to %s", got)
	}
	own.Annotations = map[string]string{names.Namespace: "default"}
	if got := k.TenantKey(own); got.Namespace != "default" {
		t.Errorf("a copy leads to %s", got)
	}
}
