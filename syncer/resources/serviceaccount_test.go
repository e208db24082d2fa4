package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// TestServiceAccountIsAName checks that the copy has no tokens or secrets,
// except image pull secrets.
func TestServiceAccountIsAName(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ServiceAccount]](t, ServiceAccount())
	if adopts := k.Adopt(&corev1.ServiceAccount{ObjectMeta: superMeta("default")}); k.OnDemand || !adopts {
		t.Errorf("on demand %t, adopt %t; want adopt alone", k.OnDemand, adopts)
	}
	if k.Adopt(&corev1.ServiceAccount{ObjectMeta: superMeta("agent")}) {
		t.Error("a service account of the platform's is adopted")
	}
	got, err := k.Desired(view, &corev1.ServiceAccount{
		ObjectMeta:                   meta("default"),
		Secrets:                      []corev1.ObjectReference{{Name: "token"}},
		ImagePullSecrets:             pullSecrets("registry"),
		AutomountServiceAccountToken: new(true),
	})
	want := &corev1.ServiceAccount{AutomountServiceAccountToken: new(false), ImagePullSecrets: pullSecrets("registry")}
	want.Annotations = map[string]string{"tenancy.x-k8s.io/values": "registry"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
}

func pullSecrets(names ...string) []corev1.LocalObjectReference {
	var refs []corev1.LocalObjectReference
	for _, name := range names {
		refs = append(refs, corev1.LocalObjectReference{Name: name})
	}
	return refs
}

func TestServiceAccountBringsItsSecrets(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ServiceAccount]](t, ServiceAccount())
	got := k.References(&corev1.ServiceAccount{
		Secrets: []corev1.ObjectReference{{Name: "token"}}, ImagePullSecrets: pullSecrets("a", "b", "a"),
	})
	if diff := cmp.Diff([]kinds.Reference{{Kind: "Secret", Name: "a"}, {Kind: "Secret", Name: "b"}}, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestServiceAccountIsNotMounted(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ServiceAccount]](t, ServiceAccount())
	for name, was := range map[string]*bool{"unset": nil, "mounted": new(true), "not mounted": new(false)} {
		t.Run(name, func(t *testing.T) {
			super := &corev1.ServiceAccount{ObjectMeta: superMeta("default"), AutomountServiceAccountToken: was}
			desired, err := k.Desired(view, &corev1.ServiceAccount{})
			if err != nil {
				t.Fatal(err)
			}
			k.Merge(super, desired)
			want := &corev1.ServiceAccount{ObjectMeta: superMeta("default"), AutomountServiceAccountToken: new(false)}
			if diff := cmp.Diff(want, super); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServiceAccountSecretsFollow checks that the tenant's secrets are added
// and removed, step by step; the super cluster's own stay.
func TestServiceAccountSecretsFollow(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.ServiceAccount]](t, ServiceAccount())
	super := &corev1.ServiceAccount{ObjectMeta: superMeta("default"), ImagePullSecrets: pullSecrets("mirror")}
	for _, step := range []struct{ tenant, want []string }{
		{nil, []string{"mirror"}},
		{[]string{"a", "b"}, []string{"mirror", "a", "b"}},
		{[]string{"b", "a"}, []string{"mirror", "a", "b"}},
		{[]string{"c", "b"}, []string{"mirror", "b", "c"}},
		{[]string{"mirror", "c"}, []string{"mirror", "c"}},
		{nil, nil}, // the tenant removed the one that both had
		{[]string{"a"}, []string{"a"}},
		{nil, nil},
	} {
		desired := down(t, k, &corev1.ServiceAccount{ObjectMeta: meta("default"), ImagePullSecrets: pullSecrets(step.tenant...)})
		for range 2 {
			merged := super.DeepCopy()
			k.Merge(merged, desired)
			translate.Merge(merged, desired.ObjectMeta)
			super = merged
			if diff := cmp.Diff(pullSecrets(step.want...), super.ImagePullSecrets, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after %q (-want +got):\n%s", step.tenant, diff)
			}
		}
	}
	if note, ok := super.Annotations["tenancy.x-k8s.io/values"]; ok {
		t.Errorf("without secrets, the annotation is %q", note)
	}
}
